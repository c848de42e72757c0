use futures_util::FutureExt as _;

use super::*;

/// The largest piece of data that OpenSSH sends at once.
const PACKET: u32 = 32 << 10;

#[tokio::test]
async fn only_a_stalled_channel_is_slowed_down() {
    let pressure = Pressure::default();
    let (one, other) = (1, 2);
    let stuck = pressure.watch(one);
    let _read = pressure.watch(other);
    stuck.put_on(STALLED_BYTES + 1);
    assert_eq!(pressure.window(one, SHUT), SHUT);
    // The stalled channel is predicted, then the other one.
    assert_eq!(pressure.window(other, SHUT), SHUT);
    assert!(pressure.window(one, SHUT) > PACKET);
    assert!(
        matches!(pressure.arrived(other, 2).now_or_never(), Some(Ok(()))),
        "a channel that is read never waits"
    );
    assert!(pressure.arrived(one, 2).now_or_never().is_none());
    pressure.arrived(one, 2).await.unwrap();
    pressure.forget(one, &stuck);
    assert_eq!(pressure.window(other, SHUT), WINDOW_BYTES);
}

#[test]
fn only_a_stalled_channel_that_sends_keeps_windows_small() {
    const LEFT: u32 = 1000;
    let pressure = Pressure::default();
    let (one, other) = (1, 2);
    let stuck = pressure.watch(one);
    let _read = pressure.watch(other);
    // It took a large window and used most of it.
    assert_eq!(pressure.window(one, WINDOW_BYTES), WINDOW_BYTES);
    stuck.put_on(STALLED_BYTES + 1);
    for bytes in [1, WINDOW_BYTES - LEFT] {
        pressure.windows().arrived(one, bytes as usize);
    }
    assert_eq!(pressure.window(other, SHUT), LEFT / 2);
    let mut later = (0..10).map(|_| pressure.window(other, SHUT));
    assert!(later.any(|target| target > PACKET), "it waits for a channel that sends no more");
}

/// One channel of a client that always has data to send, as russh sees it.
struct Sender {
    channel: u32,
    level: Arc<Level>,
    is_read: bool,
    window: u32,
    /// What the client knows of the window.
    known: u32,
    came: u64,
}

/// A client that sends on all its channels in turn whatever it may.
struct Client<'a> {
    pressure: &'a Pressure,
    target: u32,
    senders: Vec<Sender>,
}

impl<'a> Client<'a> {
    /// Starts a client with so many channels, of which one is not read.
    fn new(pressure: &'a Pressure, channels: u32, unread: u32) -> Self {
        let senders = (0..channels).map(|channel| Sender {
            channel,
            level: pressure.watch(channel),
            is_read: channel != unread,
            window: WINDOW_BYTES,
            known: WINDOW_BYTES,
            came: 0,
        });
        Self { senders: senders.collect(), target: WINDOW_BYTES, pressure }
    }

    /// Sends a round on the channels that are `ready`, at most so much on each.
    fn sends(&mut self, most: u32, ready: impl Fn(&Sender) -> bool) {
        for sender in self.senders.iter_mut().filter(|sender| ready(sender)) {
            let mut budget = sender.known.min(most);
            while budget > 0 {
                let data = budget.min(PACKET);
                budget -= data;
                sender.came += u64::from(data);
                // In the order of russh: the window, its next target, the data.
                sender.window -= data;
                if sender.window < self.target / 2 {
                    sender.window = self.target;
                    self.target = self.pressure.window(sender.channel, self.target);
                }
                if !sender.is_read {
                    sender.level.put_on(data as usize);
                }
                let _left = self.pressure.windows().arrived(sender.channel, data as usize);
            }
        }
        for sender in &mut self.senders {
            sender.known = sender.window;
        }
    }

    /// The least that came on a channel that is read.
    fn read(&self) -> u64 {
        self.senders.iter().filter(|one| one.is_read).map(|one| one.came).min().unwrap()
    }

    fn unread(&self) -> u64 {
        self.senders.iter().filter(|one| !one.is_read).map(|one| one.came).sum()
    }
}

#[test]
fn a_stalled_channel_takes_little_from_the_others() {
    for unread in 0..4 {
        let pressure = Pressure::default();
        let mut client = Client::new(&pressure, 4, unread);
        let mut rounds = 0;
        while client.read() < 64 * u64::from(WINDOW_BYTES) {
            rounds += 1;
            assert!(rounds < 64 * 16, "channel {unread}: no progress after {} MiB", client.read() >> 20);
            client.sends(64 * PACKET, |_| true);
        }
        assert!(
            client.unread() < 4 * u64::from(WINDOW_BYTES),
            "channel {unread}: {} MiB",
            client.unread() >> 20
        );
    }
}

/// An upload that nobody reads has its window, and more to send, when another one begins.
#[test]
fn an_upload_that_begins_while_another_stalls_is_not_starved() {
    for step in [PACKET, 7 * PACKET, 64 * PACKET] {
        let pressure = Pressure::default();
        pressure.is_of(Arc::default());
        let mut client = Client::new(&pressure, 2, 0);
        client.sends(step, |sender| !sender.is_read);
        let mut rounds = 0;
        while client.read() < 16 * u64::from(WINDOW_BYTES) {
            rounds += 1;
            assert!(rounds < 20_000, "steps of {step}: no progress after {} MiB", client.read() >> 20);
            client.sends(step, |_| true);
        }
        assert!(
            client.unread() < 3 * u64::from(WINDOW_BYTES),
            "steps of {step}: {} MiB",
            client.unread() >> 20
        );
    }
}

/// On a busy machine a client's channels do not always come in turn.
#[test]
fn wrong_predictions_end_nothing() {
    for (step, late) in [(PACKET, 3), (7 * PACKET, 5), (64 * PACKET, 3), (64 * PACKET, 10)] {
        let pressure = Pressure::default();
        pressure.is_of(Arc::default());
        let mut client = Client::new(&pressure, 2, 0);
        let mut rounds = 0;
        while client.read() < 64 * u64::from(WINDOW_BYTES) {
            rounds += 1;
            assert!(rounds < 50_000, "steps of {step}: no progress after {} MiB", client.read() >> 20);
            // Now and then the stalled channel comes twice before the other.
            client.sends(step, |sender| !sender.is_read || rounds % late != 0);
        }
        assert!(!pressure.is_full(), "steps of {step}, late each {late}: {} MiB", pressure.held() >> 20);
    }
}

#[tokio::test]
async fn what_a_user_holds_is_bounded_over_all_connections() {
    // Data that came before the user was known does not count, nor does its end.
    let early = Pressure::default();
    let level = early.watch(1);
    level.put_on(10);
    early.is_of(Arc::default());
    level.take_off(10);
    assert_eq!(early.held(), 0);

    let (backlogs, user) = (Backlogs::default(), "alice");
    let connections = [Pressure::default(), Pressure::default()];
    for connection in &connections {
        connection.is_of(backlogs.of(user));
    }
    let somebody = Pressure::default();
    somebody.is_of(backlogs.of("bob"));
    let channel = 1;
    let levels = connections.each_ref().map(|connection| connection.watch(channel));
    levels[0].put_on(USER_FULL_BYTES + 1);
    assert!(connections[1].is_full() && !somebody.is_full());
    // Channels that keep up get small windows, the others none.
    assert_eq!(connections[1].window(channel, WINDOW_BYTES), STAKE_MIN);
    levels[1].put_on(CROWDED_BYTES + 1);
    assert_eq!(connections[1].window(channel, STAKE_MIN), SHUT);
    levels[1].take_off(CROWDED_BYTES + 1);
    levels[0].put_on(USER_MAX_BYTES - USER_FULL_BYTES);
    assert!(connections[1].arrived(channel, 1).await.is_err() && somebody.arrived(channel, 1).await.is_ok());
    levels[0].take_off(USER_MAX_BYTES + 1);
    assert!(!connections[0].is_full() && connections[1].arrived(channel, 1).await.is_ok());
    drop((connections, levels));
    assert_eq!(backlogs.of(user).load(Ordering::Relaxed), 0);
}
