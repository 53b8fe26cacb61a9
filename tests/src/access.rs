//! How a test program connects, and how two of them wait for each other.

use std::{path::PathBuf, time::Duration};

use minikeeper_client::{
    Acl, AclList, Client, ClientBuilder, CreateMode, Error, ErrorCode, Perms, Tls,
};
use tokio::time::{sleep, timeout};

/// The error of a test program.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Options for the connection.
#[derive(clap::Args, Clone, Debug)]
pub struct Access {
    /// Servers to connect to.
    #[arg(long, value_name = "HOST:PORT,...")]
    pub connect: String,
    /// Connect over TLS, with the certificates of a folder: ca.pem, client.pem, client.key.
    #[arg(long, value_name = "FOLDER")]
    tls: Option<PathBuf>,
    /// Prove this digest identity, and give all znodes to it alone.
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = name_and_password)]
    digest: Option<(String, String)>,
    /// Authenticate with SASL DIGEST-MD5.
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = name_and_password)]
    sasl: Option<(String, String)>,
}

impl Access {
    /// Returns the builder of a client.
    ///
    /// # Errors
    /// An option is invalid, or a certificate cannot be read.
    pub fn builder(&self) -> Result<ClientBuilder, Fault> {
        let mut builder = Client::builder(&self.connect)?;
        if let Some(folder) = &self.tls {
            let tls = Tls::builder().roots_file(folder.join("ca.pem"));
            let tls =
                tls.client_certificate_files(folder.join("client.pem"), folder.join("client.key"));
            builder = builder.transport(tls.build()?);
        }
        if let Some((user, password)) = &self.sasl {
            builder = builder.sasl_digest_md5(user, password);
        }
        if let Some((user, password)) = &self.digest {
            let owner = Acl::new(Perms::ALL, "auth", "");
            let owned = builder.identity("digest", format!("{user}:{password}"));
            builder = owned.acl_provider(AclList::new(&[owner]));
        }
        Ok(builder)
    }
}

fn name_and_password(text: &str) -> Result<(String, String), String> {
    let (name, password) = text.split_once(':').ok_or("there is no colon")?;
    Ok((name.to_owned(), password.to_owned()))
}

/// A test that two programs run at the same time.
#[derive(clap::Args, Clone, Debug)]
pub struct Pair {
    /// Path below which the test creates its znodes.
    #[arg(long)]
    pub base: String,
    /// Name of this program in the test.
    #[arg(long, default_value = "rust")]
    pub name: String,
    /// Name of the other program.
    #[arg(long, default_value = "java")]
    pub other: String,
    /// Longest wait for the other program, in seconds.
    #[arg(long, default_value_t = 120)]
    pub patience: u64,
}

impl Pair {
    /// Waits until the other program is at this place, too, and returns what it says there.
    ///
    /// # Errors
    /// The other program does not come, or a server refuses.
    pub async fn meet(&self, client: &Client, place: &str, says: &str) -> Result<String, Fault> {
        let directory = format!("{}-{place}", self.base);
        let [own, other] = [&self.name, &self.other].map(|name| format!("{directory}/{name}"));
        let said = async || -> Result<Option<String>, Error> {
            for (path, says) in [(&directory, ""), (&own, says)] {
                let created = client
                    .create(path, says.as_bytes(), CreateMode::Persistent)
                    .await;
                if let Err(error) = created
                    && !error.is(ErrorCode::NodeExists)
                {
                    return Err(error);
                }
            }
            match client.get_data(&other).await {
                Ok(data) => Ok(Some(String::from_utf8_lossy(data.as_bytes()).into_owned())),
                Err(error) if error.is(ErrorCode::NoNode) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let both = async {
            loop {
                match said().await {
                    Ok(Some(said)) => return Ok(said),
                    Err(error) if !error.is_retryable() => return Err(error),
                    _ => sleep(Duration::from_millis(20)).await,
                }
            }
        };
        let limit = Duration::from_secs(self.patience);
        let said = timeout(limit, both).await;
        Ok(said.map_err(|_| format!("{} did not come to {directory}", self.other))??)
    }

    /// Waits until a condition holds.
    ///
    /// # Errors
    /// It does not within the patience; `what` is in the error.
    pub async fn until(
        &self,
        what: &str,
        mut holds: impl AsyncFnMut() -> bool,
    ) -> Result<(), Fault> {
        let held = async {
            while !holds().await {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let limit = Duration::from_secs(self.patience);
        timeout(limit, held)
            .await
            .map_err(|_| format!("not within {} s: {what}", self.patience).into())
    }
}
