//! Connects to a secured server and prints the identities that the server gives this client.
//!
//! ```sh
//! cargo run -p minikeeper-client --features sasl,tls --example identities -- zk1:2281 \
//!   ca=ca.pem cert=client.pem key=client-key.pem user=bob password=secret
//! ```
//!
//! Every setting is optional: without `ca` it connects without TLS. `any-name` switches the check of
//! the server's name off.

use std::{collections::BTreeMap, error::Error, process::ExitCode, time::Duration};

use minikeeper_client::{Client, Tls};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint(&*error);
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let servers = arguments
        .next()
        .ok_or("name the servers: host:port,host:port")?;
    let settings: BTreeMap<String, String> = arguments
        .map(|text| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (text, String::new()),
        })
        .collect();
    let setting = |name: &str| settings.get(name).map(String::as_str);

    let mut client = Client::builder(&servers)?.connection_timeout(Duration::from_secs(5));
    if let Some(ca) = setting("ca") {
        let mut tls = Tls::builder().roots_file(ca);
        if let (Some(certificate), Some(key)) = (setting("cert"), setting("key")) {
            tls = tls.client_certificate_files(certificate, key);
        }
        tls = tls.check_host_name(setting("any-name").is_none());
        client = client.transport(tls.build()?);
    }
    if let (Some(user), Some(password)) = (setting("user"), setting("password")) {
        client = client.sasl_digest_md5(user, password);
    }
    let client = client.connect().await?;
    for identity in client.who_am_i().await? {
        print(&format!("{} {}", identity.scheme, identity.user));
    }
    client.close().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn print(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "errors of a program go there")]
fn eprint(error: &dyn Error) {
    eprintln!("identities: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        eprintln!("  {error}");
        source = error.source();
    }
}
