//! What the kernel knows of the TCP connections of this host (sock_diag(7)): the messages as they
//! come; what is in them is read elsewhere.

use std::io::{self, Read};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Messages that are taken at most: each is one connection.
pub const MESSAGES_MAX: usize = 65_536;

/// The kernel answers at once, or not at all.
const PATIENCE: Duration = Duration::from_secs(2);

const AF_NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// NLM_F_REQUEST and NLM_F_DUMP.
const ALL: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEAD_LEN: usize = 16;
const REQUEST_LEN: u32 = 72;

/// All established connections of IPv4 and IPv6: an `inet_diag_msg` with its attributes each.
///
/// # Errors
/// The system has no such socket, or refuses.
pub fn established() -> io::Result<Vec<Vec<u8>>> {
    const AF_INET: u8 = 2;
    const AF_INET6: u8 = 10;
    let mut messages = dump(AF_INET)?;
    messages.extend(dump(AF_INET6)?);
    messages.truncate(MESSAGES_MAX);
    Ok(messages)
}

/// `nlmsghdr`, then `inet_diag_req_v2` for established TCP connections, with `tcp_info`.
fn request(family: u8) -> Vec<u8> {
    const IPPROTO_TCP: u8 = 6;
    const WITH_TCP_INFO: u8 = 1 << 1;
    const ESTABLISHED: u32 = 1 << 1;
    let mut bytes = Vec::new();
    bytes.extend(REQUEST_LEN.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(ALL.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, WITH_TCP_INFO, 0]);
    bytes.extend(ESTABLISHED.to_ne_bytes());
    bytes.extend([0; 48]);
    bytes
}

fn dump(family: u8) -> io::Result<Vec<Vec<u8>>> {
    let kind = (Domain::from(AF_NETLINK), Type::DGRAM, Protocol::from(NETLINK_SOCK_DIAG));
    let mut socket = Socket::new(kind.0, kind.1, Some(kind.2))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(&request(family))?;
    let mut messages = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let len = socket.read(&mut buffer)?;
        if !take(&buffer[..len], &mut messages)? || messages.len() >= MESSAGES_MAX {
            return Ok(messages);
        }
    }
}

/// The messages of one datagram; false where the last has come.
fn take(mut rest: &[u8], messages: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while let Some((head, _)) = rest.split_at_checked(HEAD_LEN) {
        let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = u16::from_ne_bytes([head[4], head[5]]);
        let Some(body) = rest.get(HEAD_LEN..len) else { return Ok(false) };
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => return Err(io::Error::other("sock_diag refuses")),
            _ => messages.push(body.to_vec()),
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_until_the_last() {
        let message = |kind: u16, body: &[u8]| {
            let len = u32::try_from(HEAD_LEN + body.len()).unwrap();
            let head = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10]].concat();
            [&head[..], body].concat()
        };
        let mut taken = Vec::new();
        let two = [message(20, &[1, 2, 3, 4]), message(NLMSG_DONE, &[0; 4])].concat();
        assert!(!take(&two, &mut taken).unwrap());
        assert_eq!(taken, [[1, 2, 3, 4]]);
        assert!(take(&message(20, &[5; 8]), &mut taken).unwrap());
        assert!(take(&message(NLMSG_ERROR, &[0; 20]), &mut taken).is_err());
        for end in 0..two.len() {
            take(&two[..end], &mut Vec::new()).ok();
        }
        assert_eq!(request(2).len(), REQUEST_LEN as usize);
    }
}
