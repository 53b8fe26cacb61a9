//! The table of known differences in the README equals the one in the code.

use std::fs;

use minikeeper_tests::differential::known;

#[test]
fn readme_shows_the_table_of_known_differences() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/differential/README.md");
    let readme = fs::read_to_string(file).unwrap();
    let shown = readme
        .split("<!-- known -->\n")
        .nth(1)
        .and_then(|rest| rest.split("<!-- /known -->").next())
        .expect("README.md has the table between <!-- known --> and <!-- /known -->");
    let table = known::table(None);
    assert_eq!(shown.trim(), table.trim(), "the table is now:\n{table}");
}
