//! Start from production data. `docs/testing/production-data.md` explains it.

use std::{fs, path::Path};

use minikeeper::{Server, assert_tree, tree};
use minikeeper_client::{Client, CreateMode, Error};

type Failure = Box<dyn std::error::Error>;

#[tokio::test]
async fn migration_works_on_production_data() -> Result<(), Failure> {
    let dir = std::env::temp_dir().join(format!("minikeeper-guide-{}", std::process::id()));
    produce(&dir).await?;
    let outcome = test(&dir).await;
    fs::remove_dir_all(&dir)?;
    outcome
}

/// Under test: converts `/config/limit` from requests per second to requests per minute.
async fn migrate(client: &Client) -> Result<(), Failure> {
    let found = client.get_data("/config/limit").await?;
    let per_second: u32 = std::str::from_utf8(found.as_bytes())?.parse()?;
    let per_minute = (per_second * 60).to_string();
    let version = Some(found.stat.version);
    client
        .set_data("/config/limit", per_minute.as_bytes(), version)
        .await?;
    client
        .create("/config/unit", b"minute", CreateMode::Persistent)
        .await?;
    Ok(())
}

async fn test(dir: &Path) -> Result<(), Failure> {
    // The directory is only read.
    let server = Server::builder().data_from(dir).start().await?;
    let client = Client::connect(&server.connect_string()).await?;

    // Sessions are data too: their ephemeral znodes stay until they end, as in production.
    assert!(server.get("/services/web").is_some());
    server.expire("/services/web")?;

    migrate(&client).await?;
    assert_tree!(server, {
        "/config" => "",
        "/config/limit" => "6000",
        "/config/unit" => "minute",
        "/services" => "",
    });
    let again = migrate(&client).await.expect_err("it has been done");
    let again = again.downcast_ref::<Error>().map(ToString::to_string);
    assert!(again.is_some_and(|error| error.contains("/config/unit")));

    // Start again from the beginning, on the same server.
    server.import_data(dir)?;
    assert_tree!(server, { "/config/limit" => "100", .. });
    Ok(())
}

/// Replaces production: writes a directory in the format of ZooKeeper 3.8 and 3.9, with a session
/// in it.
async fn produce(dir: &Path) -> Result<(), Failure> {
    let server = Server::builder()
        .seed(tree! { "/config/limit" => "100", "/services" => "" })
        .start()
        .await?;
    let web = Client::connect(&server.connect_string()).await?;
    web.create("/services/web", b"10.0.0.7:80", CreateMode::Ephemeral)
        .await?;
    server.export_data(dir)?;
    Ok(())
}
