//! A server of this package as a child process.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    /// Kept open, since the server may print more.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a program that prints `listening on ADDRESS` first.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap();
        Self {
            url: format!("http://{address}"),
            child,
            _stdout: stdout,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
