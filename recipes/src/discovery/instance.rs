//! An instance of a service, and its JSON.
//!
//! Source: Curator's `ServiceInstance`, `OldServiceInstance` and `JsonInstanceSerializer`, which use
//! Jackson.

use minikeeper_client::CreateMode;
use serde::{
    Serialize, Serializer,
    de::DeserializeOwned,
    ser::{SerializeSeq as _, SerializeStruct as _},
};
use serde_json::{Map, Value};

use super::uri_spec::{UriPart, UriSpec};

/// The longest part of a damaged instance that an error repeats. Unit: characters.
const QUOTED_MAX: usize = 200;

/// The class that Jackson needs for a list.
const LIST_CLASS: &str = "java.util.ArrayList";

/// An instance of a service, as processes register and find it. Curator's class of the same name.
///
/// `P` is the payload: any type of serde, or, by default, any JSON.
///
/// # Payloads of Java
/// Java's Jackson writes the class of a payload into the JSON, and needs it to read one that is not
/// text, a number, a boolean or a `Map`. `payload_class` is that class: it is set when an instance is
/// read, and written with the payload. Set it where a Java process expects a class of its own. A list
/// without one is written as an `ArrayList`.
///
/// # Examples
/// ```
/// use minikeeper_recipes::ServiceInstance;
///
/// let instance = ServiceInstance::<String>::new("print").port(8080).payload("duplex");
/// let json = instance.to_json()?;
/// let read = ServiceInstance::<String>::from_json(&json)?;
/// assert_eq!((read.port, read.payload.as_deref()), (Some(8080), Some("duplex")));
/// # Ok::<(), minikeeper_recipes::InstanceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[must_use]
pub struct ServiceInstance<P = Value> {
    /// The name of the service.
    pub name: String,
    /// The id, unique among the instances of the service. If it is empty, registering chooses one.
    pub id: String,
    /// The host name or IP address.
    pub address: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// The port for TLS.
    pub ssl_port: Option<u16>,
    /// What the service wants to tell its clients.
    pub payload: Option<P>,
    /// The Java class of the payload.
    pub payload_class: Option<String>,
    /// When it was registered. If it is 0, registering sets it. Unit: milliseconds since 1970.
    pub registration_time_utc: i64,
    /// How long the registration lasts.
    pub service_type: ServiceType,
    /// The template of the address.
    pub uri_spec: Option<UriSpec>,
    /// Whether providers may choose it.
    pub enabled: bool,
}

/// How long a registration lasts. Curator's enum of the same name.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ServiceType {
    /// As long as the session; a new session registers it again. The znode is ephemeral.
    #[default]
    Dynamic,
    /// Until it is unregistered. The znode is persistent.
    Static,
    /// Until it is unregistered. The znode is persistent.
    Permanent,
    /// As long as the session, in a znode with a sequence number behind the id.
    DynamicSequential,
}

impl ServiceType {
    const ALL: [Self; 4] = [
        Self::Dynamic,
        Self::Static,
        Self::Permanent,
        Self::DynamicSequential,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Dynamic => "DYNAMIC",
            Self::Static => "STATIC",
            Self::Permanent => "PERMANENT",
            Self::DynamicSequential => "DYNAMIC_SEQUENTIAL",
        }
    }

    pub(crate) const fn mode(self) -> CreateMode {
        match self {
            Self::Dynamic => CreateMode::Ephemeral,
            Self::DynamicSequential => CreateMode::EphemeralSequential,
            Self::Static | Self::Permanent => CreateMode::Persistent,
        }
    }
}

/// The reason why data is no instance, or an instance has no JSON.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The data is no JSON object.
    #[error("not a JSON object: {message}")]
    NotJson {
        /// What is wrong with it.
        message: String,
    },
    /// A field has a value that is not possible.
    #[error("field {field:?} is {found}; it must be {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value, shortened.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The payload is not of the type that the program expects. Use
    /// [`serde_json::Value`] for payloads of any type.
    #[error("payload: {message}")]
    Payload {
        /// What is wrong with it.
        message: String,
    },
}

impl<P> ServiceInstance<P> {
    /// Creates an instance of a service.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            id: String::new(),
            address: None,
            port: None,
            ssl_port: None,
            payload: None,
            payload_class: None,
            registration_time_utc: 0,
            service_type: ServiceType::default(),
            uri_spec: None,
            enabled: true,
        }
    }

    /// Sets the id. Default: registering chooses one.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets the host name or IP address. Default: none. Curator's default is a local address.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Sets the port. Default: none.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the port for TLS. Default: none.
    pub fn ssl_port(mut self, port: u16) -> Self {
        self.ssl_port = Some(port);
        self
    }

    /// Sets the payload. Default: none.
    pub fn payload(mut self, payload: impl Into<P>) -> Self {
        self.payload = Some(payload.into());
        self
    }

    /// Sets the Java class of the payload. Default: none.
    pub fn payload_class(mut self, class: impl Into<String>) -> Self {
        self.payload_class = Some(class.into());
        self
    }

    /// Sets when it was registered. Default: registering sets it. Unit: milliseconds since 1970.
    pub fn registration_time_utc(mut self, milliseconds: i64) -> Self {
        self.registration_time_utc = milliseconds;
        self
    }

    /// Sets how long the registration lasts. Default: [`ServiceType::Dynamic`].
    pub fn service_type(mut self, service_type: ServiceType) -> Self {
        self.service_type = service_type;
        self
    }

    /// Sets the template of the address. Default: none.
    pub fn uri_spec(mut self, uri_spec: UriSpec) -> Self {
        self.uri_spec = Some(uri_spec);
        self
    }

    /// Sets whether providers may choose it. Default: `true`.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Returns the URI by the template; empty without one.
    #[must_use]
    pub fn build_uri_spec(&self) -> String {
        let spec = self.uri_spec.as_ref();
        spec.map(|spec| spec.build(self)).unwrap_or_default()
    }
}

impl<P: Serialize> ServiceInstance<P> {
    /// Returns the JSON, in the form that all versions of Curator read: `enabled` is written only if
    /// it is false, which versions before 2.12 do not know.
    ///
    /// # Errors
    /// [`InstanceError::Payload`] if the payload has no JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, InstanceError> {
        let payload = serde_json::to_value(&self.payload).map_err(payload_error)?;
        let wire = WireInstance {
            instance: self,
            payload: with_class(payload, self.payload_class.as_deref()),
        };
        serde_json::to_vec(&wire).map_err(payload_error)
    }
}

impl<P: DeserializeOwned> ServiceInstance<P> {
    /// Reads the JSON. Missing fields have the values that they have in Java; unknown ones are
    /// ignored.
    ///
    /// # Errors
    /// What is wrong with the data.
    pub fn from_json(json: &[u8]) -> Result<Self, InstanceError> {
        let mut fields: Map<String, Value> =
            serde_json::from_slice(json).map_err(|error| InstanceError::NotJson {
                message: shortened(&error.to_string()),
            })?;
        let mut take = |field: &str| fields.remove(field).unwrap_or(Value::Null);
        let (payload, payload_class) = without_class(take("payload"));
        Ok(Self {
            name: text("name", take("name"))?.unwrap_or_default(),
            id: text("id", take("id"))?.unwrap_or_default(),
            address: text("address", take("address"))?,
            port: port("port", take("port"))?,
            ssl_port: port("sslPort", take("sslPort"))?,
            payload: match payload {
                Value::Null => None,
                payload => Some(serde_json::from_value(payload).map_err(payload_error)?),
            },
            payload_class,
            registration_time_utc: match take("registrationTimeUTC") {
                Value::Null => 0,
                time => number(&time).ok_or_else(|| {
                    wrong("registrationTimeUTC", &time, "a number of milliseconds")
                })?,
            },
            service_type: service_type(take("serviceType"))?,
            uri_spec: uri_spec(take("uriSpec"))?,
            enabled: match take("enabled") {
                Value::Null => true,
                Value::Bool(enabled) => enabled,
                other => return Err(wrong("enabled", &other, "true or false")),
            },
        })
    }
}

/// The fields in Java's order.
struct WireInstance<'a, P> {
    instance: &'a ServiceInstance<P>,
    payload: Value,
}

impl<P> Serialize for WireInstance<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ServiceInstance {
            name,
            id,
            address,
            port,
            ssl_port,
            registration_time_utc,
            service_type,
            uri_spec,
            enabled,
            ..
        } = self.instance;
        let fields = 9 + usize::from(!enabled);
        let mut json = serializer.serialize_struct("ServiceInstance", fields)?;
        json.serialize_field("name", name)?;
        json.serialize_field("id", id)?;
        json.serialize_field("address", address)?;
        json.serialize_field("port", port)?;
        json.serialize_field("sslPort", ssl_port)?;
        json.serialize_field("payload", &self.payload)?;
        json.serialize_field("registrationTimeUTC", registration_time_utc)?;
        json.serialize_field("serviceType", service_type.as_str())?;
        json.serialize_field("uriSpec", &uri_spec.as_ref().map(WireUri))?;
        if !enabled {
            json.serialize_field("enabled", enabled)?;
        }
        json.end()
    }
}

/// A template as Java writes it: `{"parts":[{"value":"scheme","variable":true}]}`.
struct WireUri<'a>(&'a UriSpec);

impl Serialize for WireUri<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = serializer.serialize_struct("UriSpec", 1)?;
        json.serialize_field("parts", &WireParts(&self.0.parts))?;
        json.end()
    }
}

struct WireParts<'a>(&'a [UriPart]);

impl Serialize for WireParts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for part in self.0 {
            list.serialize_element(&WirePart(part))?;
        }
        list.end()
    }
}

struct WirePart<'a>(&'a UriPart);

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (value, is_variable) = match self.0 {
            UriPart::Literal(text) => (text, false),
            UriPart::Variable(field) => (field, true),
        };
        let mut json = serializer.serialize_struct("Part", 2)?;
        json.serialize_field("value", value)?;
        json.serialize_field("variable", &is_variable)?;
        json.end()
    }
}

/// Adds the class where Jackson expects it: in an object as `@class`, around anything else as the
/// first of two elements.
fn with_class(payload: Value, class: Option<&str>) -> Value {
    match (payload, class) {
        (Value::Object(mut fields), Some(class)) => {
            let class = Value::from(class);
            fields.insert("@class".to_owned(), class);
            Value::Object(fields)
        }
        (list @ Value::Array(_), class) => {
            Value::Array(vec![class.unwrap_or(LIST_CLASS).into(), list])
        }
        (payload, Some(class)) if !payload.is_null() => Value::Array(vec![class.into(), payload]),
        (payload, _) => payload,
    }
}

/// Takes the class out again. Java writes no list without one.
fn without_class(mut payload: Value) -> (Value, Option<String>) {
    match &mut payload {
        Value::Object(fields) if matches!(fields.get("@class"), Some(Value::String(_))) => {
            let class = text("@class", fields.remove("@class").unwrap_or_default());
            (payload, class.ok().flatten())
        }
        Value::Array(list) => match list.as_mut_slice() {
            [Value::String(class), inner] => {
                let (inner, class) = (inner.take(), std::mem::take(class));
                (inner, Some(class).filter(|class| class != LIST_CLASS))
            }
            _ => (payload, None),
        },
        _ => (payload, None),
    }
}

fn text(field: &'static str, value: Value) -> Result<Option<String>, InstanceError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(wrong(field, &other, "text")),
    }
}

/// Returns a number, which may be in quotes, as Jackson reads it.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_i64(),
    }
}

fn port(field: &'static str, value: Value) -> Result<Option<u16>, InstanceError> {
    if value.is_null() {
        return Ok(None);
    }
    let port = number(&value).and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or_else(|| wrong(field, &value, "a number from 0 to 65535"))?;
    Ok(Some(port))
}

fn service_type(value: Value) -> Result<ServiceType, InstanceError> {
    if value.is_null() {
        return Ok(ServiceType::default());
    }
    let mut known = ServiceType::ALL.into_iter();
    let found = known.find(|known| value.as_str() == Some(known.as_str()));
    found.ok_or_else(|| {
        let expected = "DYNAMIC, STATIC, PERMANENT or DYNAMIC_SEQUENTIAL";
        wrong("serviceType", &value, expected)
    })
}

fn uri_spec(value: Value) -> Result<Option<UriSpec>, InstanceError> {
    if value.is_null() {
        return Ok(None);
    }
    let part = |part: &Value| {
        let value = part.get("value")?.as_str()?.to_owned();
        let is_variable = part.get("variable").and_then(Value::as_bool);
        Some(match is_variable {
            Some(true) => UriPart::Variable(value),
            _ => UriPart::Literal(value),
        })
    };
    let parts = value.get("parts").and_then(Value::as_array);
    let parts: Option<_> = parts.and_then(|parts| parts.iter().map(part).collect());
    let parts = parts.ok_or_else(|| wrong("uriSpec", &value, "an object with parts"))?;
    Ok(Some(UriSpec { parts }))
}

fn wrong(field: &'static str, found: &Value, expected: &'static str) -> InstanceError {
    InstanceError::Field {
        field,
        found: shortened(&found.to_string()),
        expected,
    }
}

fn payload_error(error: serde_json::Error) -> InstanceError {
    InstanceError::Payload {
        message: shortened(&error.to_string()),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
