//! The engine against scenarios and the model.
