//! A transport over another one: it says what it does otherwise, and the one beneath does the rest.
//!
//! A [`Layer`] has the operations of [`Transport`], each of which goes to the transport beneath
//! unless the layer has its own; whatever is a layer is a transport. The operations stand once, in
//! the list below: one of [`Transport`] that has a default there has to be thought of.

use std::fmt;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use perf::units::Instant;
use wire::record::Message;

use super::Transport;
use crate::error::TransportError;

macro_rules! layer {
    (
        { $($does:ident($($arg:ident: $kind:ty),*) -> $out:ty;)* }
        { $($says:ident($($part:ident: $form:ty),*) -> $value:ty;)* }
    ) => {
        /// See the module's head.
        pub trait Layer: fmt::Debug + Send {
            type Beneath: Transport + ?Sized;

            fn beneath(&self) -> &Self::Beneath;

            fn beneath_mut(&mut self) -> &mut Self::Beneath;

            $(
                #[doc = concat!("As [`Transport::", stringify!($does), "`].")]
                fn $does(&mut self, $($arg: $kind),*) -> $out {
                    self.beneath_mut().$does($($arg),*)
                }
            )*

            $(
                #[doc = concat!("As [`Transport::", stringify!($says), "`].")]
                fn $says(&self, $($part: $form),*) -> $value {
                    self.beneath().$says($($part),*)
                }
            )*
        }

        impl<L: Layer> Transport for L {
            $(
                fn $does(&mut self, $($arg: $kind),*) -> $out {
                    Layer::$does(self, $($arg),*)
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

layer! {
    {
        poll_receive(cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, TransportError>>;
        poll_ready(cx: &mut Context<'_>) -> Poll<Result<(), TransportError>>;
        send(message: Message) -> ();
        poll_flush(cx: &mut Context<'_>) -> Poll<Result<(), TransportError>>;
        ask_for_room() -> ();
        allow() -> ();
        take_error() -> Option<TransportError>;
        end_sending() -> ();
        abort() -> ();
        poll_close(cx: &mut Context<'_>) -> Poll<()>;
    }
    {
        peer() -> SocketAddr;
        local() -> Option<SocketAddr>;
        owner() -> Option<u32>;
        unsent_bytes() -> usize;
        departs() -> Option<Instant>;
        retained_bytes(message_bytes: usize) -> usize;
        is_within_record() -> bool;
        wanted_bytes() -> Option<usize>;
        is_fresh() -> bool;
    }
}

impl<T: Transport + ?Sized> Layer for Box<T> {
    type Beneath = T;

    fn beneath(&self) -> &T {
        self
    }

    fn beneath_mut(&mut self) -> &mut T {
        self
    }
}

/// Gives `beneath` the messages that are `due`, as far as it takes them, and flushes it; ready when
/// none is left. What is due does not wait for what is not.
pub(crate) fn poll_flush_due(
    beneath: &mut impl Transport,
    cx: &mut Context<'_>,
    mut due: impl FnMut(&mut Context<'_>) -> Poll<Option<Message>>,
) -> Poll<Result<(), TransportError>> {
    loop {
        ready!(beneath.poll_ready(cx))?;
        match due(cx) {
            Poll::Ready(Some(message)) => beneath.send(message),
            Poll::Ready(None) => return beneath.poll_flush(cx),
            Poll::Pending => {
                if let Poll::Ready(Err(error)) = beneath.poll_flush(cx) {
                    return Poll::Ready(Err(error));
                }
                return Poll::Pending;
            }
        }
    }
}
