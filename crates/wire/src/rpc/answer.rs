//! What comes of a record, between the one who serves calls and the one who sends replies.

use crate::record::Message;

/// What is to be sent for a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    Reply(Message),
    /// Nothing: the call is in progress already, and will be answered once.
    Nothing,
    /// Nothing: it was no call, and what follows it on a stream is not to be trusted.
    NotACall,
}

impl Answer {
    /// The reply, if there is one.
    pub fn reply(self) -> Option<Message> {
        match self {
            Self::Reply(reply) => Some(reply),
            Self::Nothing | Self::NotACall => None,
        }
    }
}
