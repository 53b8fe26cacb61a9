//! Requests that change znodes.

use std::{future::Future, sync::Arc};

use minikeeper_client::{
    AclList, Cause, CreateOptions, Created, Error, ErrorCode, Multi, MultiResult, MultiStep,
    Stamped, Stat, Zxid,
};
use zookeeper_client::{self as theirs, MultiWriteError, MultiWriteResult};

use crate::{
    access::Access,
    calls::{Call, Insured, call},
    clean_up, convert,
    session::Shared,
};
use minikeeper_recipes::naming;

/// The largest request that servers accept. Unit: bytes.
const REQUEST_BYTES_MAX: usize = 0xf_ffff;

/// An upper bound for the size of a request without paths and data. Unit: bytes.
const FIXED_BYTES: usize = 512;

/// Refuses requests that are too large: each attempt would end the connection.
fn check_size(op: &'static str, path: &str, payload_bytes: usize) -> Result<(), Error> {
    let (path, bytes) = (path.to_owned(), payload_bytes + FIXED_BYTES);
    let bytes_max = REQUEST_BYTES_MAX;
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(Error::TooLarge {
        op,
        path,
        bytes,
        bytes_max,
    })
}

/// See [`ZooKeeper::create`](minikeeper_recipes::client::ZooKeeper::create).
pub(crate) fn create(
    shared: &Arc<Shared>,
    path: &str,
    data: &[u8],
    options: &CreateOptions,
    acl: &AclList,
) -> Insured<Result<Stamped<Created>, Error>> {
    let epoch = shared.session().epoch;
    let (mode, is_withdrawn) = (options.mode(), options.is_withdrawn_if_dropped());
    let begun = begin_create(shared, path, data, options, acl);
    let (owner, given) = (Arc::clone(shared), path.to_owned());
    let created = async move {
        let (session, (name, stat)) = begun?.in_session().await?;
        let path = format!("{given}{name}");
        let lost = |cause| Error::OutcomeUnknown {
            op: "create2",
            path: path.clone(),
            cause,
        };
        let stat = match stat {
            Some(stat) => stat,
            None => {
                // The server is too old to return the stat.
                let exists = call(&owner, "exists", &path, |client, path| async move {
                    client.check_stat(&path).await
                });
                let stat = exists.value().await?;
                let stat = stat.ok_or_else(|| lost(Cause::ConnectionLost))?;
                convert::stat(&stat)
            }
        };
        let is_foreign = stat.ephemeral_owner.0 != session.client.session_id().0;
        if mode.is_ephemeral() && is_foreign {
            clean_up::named(&owner, session.epoch, &path);
            owner.replaced(session.generation);
            return Err(lost(Cause::SessionLost));
        }
        let (zxid, epoch) = (Zxid::NONE, session.epoch);
        let value = Created { path, stat };
        Ok(Stamped { value, zxid, epoch })
    };
    let (owner, given) = (Arc::clone(shared), path.to_owned());
    let withdraw = move |result: Result<Stamped<Created>, Error>| match result {
        Ok(created) => clean_up::named(&owner, created.epoch, &created.value.path),
        Err(error) if error.is_outcome_unknown() => {
            let (parent, prefix) = (naming::parent_of(&given), naming::name_of(&given));
            clean_up::unanswered(&owner, epoch, parent, prefix);
        }
        Err(_) => {}
    };
    let withdraw = is_withdrawn.then_some(withdraw);
    Insured::new(&shared.runtime, created, withdraw)
}

/// Returns the created path with its sequence number, and the stat if the server returned one.
type Begun = Call<(String, Option<Stat>)>;

fn begin_create(
    shared: &Arc<Shared>,
    path: &str,
    data: &[u8],
    options: &CreateOptions,
    acl: &AclList,
) -> Result<Begun, Error> {
    let op = "create2";
    check_size(op, path, path.len() + data.len())?;
    let is_sequential = options.mode().is_sequential();
    let (data, acls, options) = (data.to_vec(), convert::acls(acl), options.clone());
    Ok(call(shared, op, path, move |client, path| async move {
        let options = convert::options(&options, &acls);
        let (stat, sequence) = client.create(&path, &data, &options).await?;
        let name = if is_sequential {
            sequence.to_string()
        } else {
            String::new()
        };
        let has_stat = !stat.is_invalid();
        Ok((name, has_stat.then(|| convert::stat(&stat))))
    }))
}

/// See [`ZooKeeper::delete`](minikeeper_recipes::client::ZooKeeper::delete).
pub(crate) fn delete(shared: &Arc<Shared>, path: &str) -> Insured<Result<(), Error>> {
    let epoch = shared.session().epoch;
    let delete = call(shared, "delete", path, |client, path| async move {
        client.delete(&path, None).await
    });
    let (owner, path) = (Arc::clone(shared), path.to_owned());
    let deleted = async move {
        let result = delete.value().await;
        if result.as_ref().is_err_and(Error::is_retryable) {
            clean_up::named(&owner, epoch, &path);
        }
        result
    };
    Insured::new(&shared.runtime, deleted, Some(drop))
}

/// See [`ZooKeeper::set_data`](minikeeper_recipes::client::ZooKeeper::set_data).
pub(crate) fn set_data(
    shared: &Arc<Shared>,
    path: &str,
    data: &[u8],
    version: Option<i32>,
) -> impl Future<Output = Result<Stat, Error>> + Send + use<> {
    let op = "setData";
    let begun = check_size(op, path, path.len() + data.len()).map(|()| {
        let data = data.to_vec();
        call(shared, op, path, move |client, path| async move {
            client.set_data(&path, &data, version).await
        })
    });
    async move { Ok(convert::stat(&begun?.value().await?)) }
}

/// See [`ZooKeeper::multi`](minikeeper_recipes::client::ZooKeeper::multi).
pub(crate) fn multi(
    shared: &Arc<Shared>,
    provider: Access,
    multi: Multi,
) -> impl Future<Output = Result<Vec<MultiResult>, Error>> + Send + use<> {
    let (op, path) = ("multi", "");
    let bytes = multi.steps().map(|step| match step {
        MultiStep::Create { path, data, .. } | MultiStep::SetData { path, data, .. } => {
            path.len() + data.len()
        }
        MultiStep::Check { path, .. } | MultiStep::Delete { path, .. } => path.len(),
    });
    // Each step takes 9 more bytes, a create about 40.
    let bytes = bytes.map(|bytes| bytes + 64).sum();
    let paths: Vec<_> = multi.steps().map(|step| step.path().to_owned()).collect();
    let begun = check_size(op, path, bytes).map(|()| {
        call(shared, op, path, move |client, _| async move {
            match commit(&client, &provider, &multi).await {
                Ok(results) => Ok(Ok(results)),
                // A failed operation is a reply too.
                Err(MultiWriteError::OperationFailed { index, source }) => Ok(Err((index, source))),
                Err(MultiWriteError::RequestFailed { source }) => Err(source),
            }
        })
    });
    async move {
        match begun?.value().await? {
            Ok(results) => Ok(results.into_iter().map(result).collect()),
            Err((index, source)) => Err(Error::MultiRefused {
                index,
                path: paths.get(index).cloned().unwrap_or_default(),
                code: convert::code(&source).unwrap_or(ErrorCode::SystemError),
            }),
        }
    }
}

async fn commit(
    client: &theirs::Client,
    provider: &Access,
    multi: &Multi,
) -> Result<Vec<MultiWriteResult>, MultiWriteError> {
    let mut writer = client.new_multi_writer();
    for step in multi.steps() {
        match step {
            MultiStep::Check { path, version } => {
                writer.add_check_version(path, version.unwrap_or(-1))
            }
            MultiStep::Create {
                path,
                data,
                options,
            } => {
                let acls = convert::acls(&provider.acl_for(path, options));
                writer.add_create(path, data, &convert::options(options, &acls))
            }
            MultiStep::SetData {
                path,
                data,
                version,
            } => writer.add_set_data(path, data, version),
            MultiStep::Delete { path, version } => writer.add_delete(path, version),
        }?;
    }
    writer.commit().await
}

fn result(result: MultiWriteResult) -> MultiResult {
    match result {
        MultiWriteResult::Check => MultiResult::Check,
        MultiWriteResult::Delete => MultiResult::Delete,
        MultiWriteResult::Create { path, stat } => MultiResult::Create2 {
            path: path.into(),
            stat: convert::stat(&stat),
        },
        MultiWriteResult::SetData { stat } => MultiResult::SetData {
            stat: convert::stat(&stat),
        },
        _ => MultiResult::Error(None),
    }
}
