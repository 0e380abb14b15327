//! Enumerations whose variants have names, each written once.

/// An enumeration with `ALL`, its variants in their order, and with `name`.
///
/// ```
/// perf::named! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Side {
///         Client => "client",
///         Server => "server",
///     }
/// }
/// assert_eq!(Side::ALL.map(Side::name), ["client", "server"]);
/// ```
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident {
            $($(#[$variant_meta:meta])* $variant:ident => $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        $vis enum $enum { $($(#[$variant_meta])* $variant,)* }

        impl $enum {
            /// All, in this order.
            $vis const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// For people and programs.
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}
