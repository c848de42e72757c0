//! Terminal modes as SSH clients send them: opcodes of RFC 4254, section 8. What a terminal here does not have is
//! left alone.

use rustix::termios::{ControlModes, InputModes, LocalModes, OutputModes, SpecialCodeIndex as Code, Termios};

/// What a client sends for a key that does nothing.
const OFF: u32 = 255;

const KEYS: [(u8, Code); 15] = [
    (1, Code::VINTR),
    (2, Code::VQUIT),
    (3, Code::VERASE),
    (4, Code::VKILL),
    (5, Code::VEOF),
    (6, Code::VEOL),
    (7, Code::VEOL2),
    (8, Code::VSTART),
    (9, Code::VSTOP),
    (10, Code::VSUSP),
    (12, Code::VREPRINT),
    (13, Code::VWERASE),
    (14, Code::VLNEXT),
    (16, Code::VSWTC),
    (18, Code::VDISCARD),
];

const INPUT: [(u8, InputModes); 13] = [
    (30, InputModes::IGNPAR),
    (31, InputModes::PARMRK),
    (32, InputModes::INPCK),
    (33, InputModes::ISTRIP),
    (34, InputModes::INLCR),
    (35, InputModes::IGNCR),
    (36, InputModes::ICRNL),
    (37, InputModes::IUCLC),
    (38, InputModes::IXON),
    (39, InputModes::IXANY),
    (40, InputModes::IXOFF),
    (41, InputModes::IMAXBEL),
    (42, InputModes::IUTF8),
];

const LOCAL: [(u8, LocalModes); 13] = [
    (50, LocalModes::ISIG),
    (51, LocalModes::ICANON),
    (52, LocalModes::XCASE),
    (53, LocalModes::ECHO),
    (54, LocalModes::ECHOE),
    (55, LocalModes::ECHOK),
    (56, LocalModes::ECHONL),
    (57, LocalModes::NOFLSH),
    (58, LocalModes::TOSTOP),
    (59, LocalModes::IEXTEN),
    (60, LocalModes::ECHOCTL),
    (61, LocalModes::ECHOKE),
    (62, LocalModes::PENDIN),
];

const OUTPUT: [(u8, OutputModes); 6] = [
    (70, OutputModes::OPOST),
    (71, OutputModes::OLCUC),
    (72, OutputModes::ONLCR),
    (73, OutputModes::OCRNL),
    (74, OutputModes::ONOCR),
    (75, OutputModes::ONLRET),
];

const PARITY: [(u8, ControlModes); 2] = [(92, ControlModes::PARENB), (93, ControlModes::PARODD)];

/// Sets what the client asked for.
pub(crate) fn apply(termios: &mut Termios, modes: &[(u8, u32)]) {
    for &(opcode, value) in modes {
        let (on, found) = (value != 0, |known: u8| known == opcode);
        if let Some((_, key)) = KEYS.iter().find(|(known, _)| found(*known)) {
            let byte = if value == OFF { 0 } else { u8::try_from(value).unwrap_or(0) };
            termios.special_codes[*key] = byte;
        } else if let Some((_, mode)) = INPUT.iter().find(|(known, _)| found(*known)) {
            termios.input_modes.set(*mode, on);
        } else if let Some((_, mode)) = LOCAL.iter().find(|(known, _)| found(*known)) {
            termios.local_modes.set(*mode, on);
        } else if let Some((_, mode)) = OUTPUT.iter().find(|(known, _)| found(*known)) {
            termios.output_modes.set(*mode, on);
        } else if let Some((_, mode)) = PARITY.iter().find(|(known, _)| found(*known)) {
            termios.control_modes.set(*mode, on);
        }
    }
}
