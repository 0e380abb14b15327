//! Small macros, so that a message is written once, as the struct it is.
//!
//! A struct's fields travel in the order in which they stand. For each type the macros write
//! `Encode`, `Decode`, `Show` (one line for humans) and, for tests, `Sample` (a random value).

/// A struct whose fields travel in order. `where len <= MAX` bounds an opaque.
macro_rules! xdr_struct {
    ($($definition:tt)*) => {
        $crate::xdr::macros::xdr_codec! { $($definition)* }
        $crate::xdr::macros::xdr_show! { $($definition)* }
    };
}

/// [`xdr_struct`] without `Show`, for a type that has a shorter way to print itself.
macro_rules! xdr_codec {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(where len <= $max:expr)?,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }
        $crate::xdr::macros::xdr_codec! {
            @impl 'a [$name] [$name] $($field $(($max))?)*
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$life:lifetime> {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(where len <= $max:expr)?,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name<$life> { $($(#[$field_meta])* pub $field: $type,)* }
        $crate::xdr::macros::xdr_codec! {
            @impl $life [$name<$life>] [$name<'_>] $($field $(($max))?)*
        }
    };
    (
        @impl $life:lifetime [$($borrowing:tt)*] [$($elided:tt)*]
        $($field:ident $(($max:expr))?)*
    ) => {
        impl $crate::xdr::Encode for $($elided)* {
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$field.encode(out);)*
            }
        }

        impl<$life> $crate::xdr::Decode<$life> for $($borrowing)* {
            fn decode(
                r: &mut $crate::xdr::Reader<$life>,
            ) -> Result<Self, $crate::xdr::DecodeError> {
                Ok(Self {
                    $($field: $crate::xdr::macros::xdr_codec!(@decode r $field $(($max))?),)*
                })
            }
        }

        #[cfg(test)]
        impl<$life> $crate::testing::Sample<$life> for $($borrowing)* {
            fn sample(entropy: &mut $crate::testing::Entropy<$life>) -> Self {
                Self {
                    $($field: $crate::xdr::macros::xdr_codec!(@sample entropy $(($max))?),)*
                }
            }
        }
    };
    (@decode $r:ident $field:ident) => { $r.field(stringify!($field))? };
    (@decode $r:ident $field:ident ($max:expr)) => {
        $r.opaque_field(stringify!($field), $max)?
    };
    (@sample $entropy:ident) => { $crate::testing::Sample::sample($entropy) };
    (@sample $entropy:ident ($max:expr)) => { $entropy.bytes($max) };
}

/// [`xdr_codec`] of a struct that ends with its bulk payload `data`, and `Bulk`.
macro_rules! xdr_bulk {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$life:lifetime> {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(where len <= $max:expr)?,)*
        }
    ) => {
        $crate::xdr::macros::xdr_codec! {
            $(#[$meta])*
            pub struct $name<$life> {
                $($(#[$field_meta])* pub $field: $type $(where len <= $max)?,)*
            }
        }

        impl $crate::xdr::Bulk for $name<'_> {
            fn encode_head(&self, out: &mut Vec<u8>) {
                $($crate::xdr::macros::xdr_bulk!(@head self.$field, out $(, $max)?);)*
            }

            fn payload(&self) -> &[u8] {
                self.data
            }
        }
    };
    (@head $field:expr, $out:ident) => { $crate::xdr::Encode::encode(&$field, $out) };
    (@head $field:expr, $out:ident, $max:expr) => { $crate::xdr::put_len($out, $field.len()) };
}

/// Shows a struct as its fields, `name=value`, one after the other.
macro_rules! xdr_show {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(<$life:lifetime>)? {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(where len <= $max:expr)?,)*
        }
    ) => {
        impl $(<$life>)? $crate::show::Show for $name $(<$life>)? {
            fn show(&self, _name: &'static str, line: &mut $crate::show::Line) {
                $($crate::show::Show::show(&self.$field, stringify!($field), line);)*
            }
        }
    };
}

/// A closed enumeration: a value that is not listed is a decode error.
macro_rules! xdr_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $code:literal $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum $name { $($(#[$variant_meta])* $variant = $code,)* }

        impl $name {
            /// Every value, in the order of the RFC.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The number on the wire.
            pub const fn code(self) -> u32 {
                self as u32
            }

            /// The value with this number on the wire, if there is one.
            pub const fn from_code(code: u32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The RFC's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        $crate::xdr::macros::xdr_code! { $name }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl $crate::show::Show for $name {
            fn show(&self, name: &'static str, line: &mut $crate::show::Line) {
                line.field(name, self);
            }
        }

        #[cfg(test)]
        impl<'a> $crate::testing::Sample<'a> for $name {
            fn sample(entropy: &mut $crate::testing::Entropy<'a>) -> Self {
                *entropy.choose(Self::ALL)
            }
        }
    };
}

/// Reasons for a failure: never 0 (that is success), and open, because a peer may know more.
macro_rules! xdr_failures {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $code:literal $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
            /// A number the RFC does not list.
            Other(std::num::NonZeroU32),
        }

        impl $name {
            /// Every listed value, in the order of the RFC.
            pub const LISTED: &[Self] = &[$(Self::$variant,)*];

            /// The number on the wire, never 0.
            pub const fn code(self) -> u32 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(code) => code.get(),
                }
            }

            /// The reason with this number on the wire; none for 0, which is success.
            pub fn from_code(code: u32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => std::num::NonZeroU32::new(code).map(Self::Other),
                }
            }

            /// The RFC's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(_) => "unlisted",
                }
            }
        }

        $crate::xdr::macros::xdr_code! { $name }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    Self::Other(code) => write!(f, "{}({code})", self.name()),
                    _ => f.write_str(self.name()),
                }
            }
        }

        impl $crate::show::Show for $name {
            fn show(&self, _name: &'static str, line: &mut $crate::show::Line) {
                line.word(self);
            }
        }

        #[cfg(test)]
        impl<'a> $crate::testing::Sample<'a> for $name {
            fn sample(entropy: &mut $crate::testing::Entropy<'a>) -> Self {
                match entropy.flag() {
                    true => *entropy.choose(Self::LISTED),
                    false => Self::from_code(entropy.u32()).unwrap_or(Self::LISTED[0]),
                }
            }
        }
    };
}

/// What travels is the `code()`; `from_code()` says which codes there are.
macro_rules! xdr_code {
    ($name:ident) => {
        impl $crate::xdr::Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                self.code().encode(out);
            }
        }

        impl $crate::xdr::Decode<'_> for $name {
            fn decode(r: &mut $crate::xdr::Reader<'_>) -> Result<Self, $crate::xdr::DecodeError> {
                let at = r.at();
                let value = r.u32()?;
                Self::from_code(value)
                    .ok_or_else(|| $crate::xdr::DecodeErrorKind::BadEnum { value }.at(at))
            }
        }
    };
}

pub(crate) use {xdr_bulk, xdr_code, xdr_codec, xdr_enum, xdr_failures, xdr_show, xdr_struct};
