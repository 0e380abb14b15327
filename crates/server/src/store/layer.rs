//! A store over another one: it says what it changes, and the store beneath does the rest.
//!
//! A [`Layer`] has the operations of [`Store`], each of which goes to the store beneath unless the
//! layer has its own; whatever is a layer is a store. Nothing is boxed, and an operation that a
//! layer does not have costs what it costs beneath.
//!
//! The operations stand once, in the list below. One of [`Store`] that is missing there does not
//! compile; only what has a default there has to be thought of.

use bytes::Bytes;
use perf::units::Instant;

use crate::durable::Durable;
use crate::metrics::Reading;
use crate::replies::Recorded;
use crate::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier,
};

use super::{
    Changed, Extent, Linked, ListFrom, Listed, Looked, Medium, Node, Properties, Renamed, Sink,
    Space, Store, Written,
};

macro_rules! layer {
    (
        { $($waits:ident($($arg:ident: $kind:ty),*) -> $out:ty;)* }
        { $($says:ident($($part:ident: $form:ty),*) -> $value:ty;)* }
    ) => {
        /// See the module's head.
        pub trait Layer: Send + Sync + 'static {
            type Beneath: Store;

            fn beneath(&self) -> &Self::Beneath;

            $(
                #[doc = concat!("As [`Store::", stringify!($waits), "`].")]
                fn $waits(&self, $($arg: $kind),*) -> impl Future<Output = $out> + Send {
                    self.beneath().$waits($($arg),*)
                }
            )*

            $(
                #[doc = concat!("As [`Store::", stringify!($says), "`].")]
                fn $says(&self, $($part: $form),*) -> $value {
                    self.beneath().$says($($part),*)
                }
            )*
        }

        impl<L: Layer> Store for L {
            $(
                fn $waits(&self, $($arg: $kind),*) -> impl Future<Output = $out> + Send {
                    Layer::$waits(self, $($arg),*)
                }
            )*

            $(
                fn $says(&self, $($part: $form),*) -> $value {
                    Layer::$says(self, $($part),*)
                }
            )*
        }
    };
}

// The operations that may wait, and those that do not.
layer! {
    {
        tend(now: Instant) -> ();
        attr(caller: &Caller, handle: &Handle) -> Result<Attr, Status>;
        set_attr(caller: &Caller, handle: &Handle, changes: SetAttr, guard: Option<Time>)
            -> Changed<()>;
        lookup(caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node>;
        climb(caller: &Caller, dir: &Handle) -> Looked<Node>;
        access(caller: &Caller, handle: &Handle, wanted: Access) -> Looked<Access>;
        read_link(caller: &Caller, handle: &Handle) -> Looked<Bytes>;
        read(caller: &Caller, handle: &Handle, offset: u64, count: u32) -> Looked<Extent>;
        write(
            caller: &Caller, handle: &Handle, offset: u64, data: Bytes, stability: Stability
        ) -> Changed<Written>;
        commit(caller: &Caller, handle: &Handle, offset: u64, count: u32) -> Changed<Durable>;
        create(caller: &Caller, dir: &Handle, name: &[u8], how: CreateHow) -> Changed<Node>;
        make_dir(caller: &Caller, dir: &Handle, name: &[u8], attrs: SetAttr) -> Changed<Node>;
        symlink(
            caller: &Caller, dir: &Handle, name: &[u8], target: &[u8], attrs: SetAttr
        ) -> Changed<Node>;
        make_node(
            caller: &Caller, dir: &Handle, name: &[u8], what: Special, attrs: SetAttr
        ) -> Changed<Node>;
        remove(caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()>;
        remove_dir(caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()>;
        rename(
            caller: &Caller, from_dir: &Handle, from_name: &[u8], to_dir: &Handle, to_name: &[u8]
        ) -> Renamed;
        link(caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked;
        list(caller: &Caller, dir: &Handle, from: ListFrom, sink: Sink<'_>) -> Looked<Listed>;
        settle(handle: &Handle) -> Result<(), Status>;
        space(caller: &Caller, handle: &Handle) -> Looked<Space>;
        properties(caller: &Caller, handle: &Handle) -> Looked<Properties>;
    }
    {
        root() -> Handle;
        medium() -> Medium;
        verifier() -> Verifier;
        brief(handle: &Handle) -> Option<Handle>;
        full(handle: &Handle) -> Handle;
        shares_clock() -> bool;
        guesses_rights() -> bool;
        doubts() -> u64;
        sync_failures() -> u64;
        unstored_handles() -> u64;
        readings() -> Vec<Reading>;
        keeps_replies() -> bool;
        recorded() -> Vec<Recorded>;
    }
}
