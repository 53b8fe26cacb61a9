//! The check of fencing tokens, for resources in Rust.

use parking_lot::Mutex;

use crate::{observe::meter, status::FencingToken};

/// Refuses fencing tokens that are smaller than the largest so far: the part of a resource that
/// stops a holder that lost its lock and has not noticed yet.
///
/// Keep it where the resource is, and check each action before it is carried out. To be safe after a
/// restart, the resource stores the largest token together with its data, and begins with it again.
///
/// It counts what it refuses in the metric `minikeeper_tokens_refused_total`, with the feature
/// `metrics`, and reports it as a warning of `tracing`.
///
/// # Examples
/// ```
/// use minikeeper_recipes::{FencingToken, TokenCheck};
///
/// let token = |czxid| FencingToken { czxid, pass: 0 };
/// let register = TokenCheck::new("register");
/// register.check(token(7))?;
/// register.check(token(9))?; // the next holder
/// register.check(token(9))?; // the same grant
/// let late = register.check(token(7)).expect_err("its lock was lost");
/// assert_eq!(
///     late.to_string(),
///     r#"fencing token 7 for "register" is smaller than 9, which came before: the lock was lost"#
/// );
/// # Ok::<(), minikeeper_recipes::TokenRefused>(())
/// ```
#[derive(Debug)]
pub struct TokenCheck {
    resource: &'static str,
    largest: Mutex<Option<FencingToken>>,
}

impl TokenCheck {
    /// Creates a check that has seen no token. The name of the resource appears in errors, events
    /// and metrics.
    #[must_use]
    pub const fn new(resource: &'static str) -> Self {
        Self {
            resource,
            largest: Mutex::new(None),
        }
    }

    /// Accepts the token if none was larger so far, and remembers it.
    ///
    /// # Errors
    /// [`TokenRefused`] if there was a larger one. A retry with the same token does not help: the
    /// holder must stop, or acquire the lock again.
    pub fn check(&self, token: FencingToken) -> Result<(), TokenRefused> {
        let mut largest = self.largest.lock();
        match *largest {
            Some(largest) if token < largest => {
                let resource = self.resource;
                tracing::warn!(resource, %token, %largest, "token refused");
                meter::token_refused(resource);
                Err(TokenRefused {
                    resource,
                    token,
                    largest,
                })
            }
            _ => {
                *largest = Some(token);
                Ok(())
            }
        }
    }

    /// Returns the largest token so far, to be stored with the data of the resource.
    #[must_use]
    pub fn largest(&self) -> Option<FencingToken> {
        *self.largest.lock()
    }
}

/// A fencing token is smaller than one that came before: the lock of its sender was lost.
///
/// Returned by [`TokenCheck::check`].
///
/// # Examples
/// ```
/// use minikeeper_recipes::{FencingToken, TokenCheck};
///
/// let token = |czxid| FencingToken { czxid, pass: 0 };
/// let register = TokenCheck::new("register");
/// register.check(token(9))?;
/// let refused = register.check(token(7)).expect_err("9 came before");
/// assert_eq!((refused.token, refused.largest), (token(7), token(9)));
/// # Ok::<(), minikeeper_recipes::TokenRefused>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "fencing token {token} for {resource:?} is smaller than {largest}, which came before: the lock was lost"
)]
#[non_exhaustive]
pub struct TokenRefused {
    /// The name of the resource.
    pub resource: &'static str,
    /// The token that was refused.
    pub token: FencingToken,
    /// The largest token so far.
    pub largest: FencingToken,
}
