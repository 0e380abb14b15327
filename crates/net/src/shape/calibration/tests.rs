use super::*;

fn found(latency: Nanos, median: Nanos) -> Calibration {
    let late = Lateness { median, p99: median };
    Calibration {
        latency,
        late,
        cost: Nanos::ZERO,
        messages_per_sec_max: 0,
        fails_at_any_rate: false,
        spent: None,
    }
}

#[test]
fn what_is_right_is_5_us_or_2_percent_and_what_is_refused_twice_that() {
    let (us, ms) = (Nanos::from_micros, Nanos::from_millis);
    assert!(found(us(10), us(5)).is_good());
    assert!(!found(us(10), us(6)).is_good());
    assert!(found(ms(5), us(100)).is_good());
    assert_eq!(found(us(100), us(10)).verdict(), Ok(()));
    assert!(found(us(100), us(11)).verdict().is_err());
    assert_eq!(found(Nanos::ZERO, us(50)).verdict(), Ok(()), "nothing is delayed");
    // A machine whose timers tick in milliseconds.
    let refused = found(us(100), us(900)).verdict().unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("by 100 us: they came 900 us too late"), "{text}");
    assert!(text.contains("at most 10.0 us"), "{text}");
    assert_eq!(found(ms(40), us(1600)).verdict(), Ok(()));
    assert!(found(ms(40), ms(2)).verdict().is_err());
    let slow = Calibration { fails_at_any_rate: true, ..found(us(100), us(1)) };
    let text = slow.verdict().unwrap_err().to_string();
    assert!(text.contains("by 100 us: even 10000 a second"), "{text}");
}

#[test]
fn where_there_is_no_latency_what_else_delays_is_tried() {
    for (profile, micros) in [
        ("lan-1g", 100),
        ("L=90ms", 40_000),
        ("g=30us", 30),
        ("there.g=30us,back.g=20us", 20),
        ("G=1MB/s", 8192),
        ("G=1MB/s,back.g=5us", 5),
        ("jitter=uniform:7us", 7),
        ("loss=1%", 0),
        ("o=9us", 0),
    ] {
        let latency = latency_of(&profile.parse().unwrap());
        assert_eq!(latency, Nanos::from_micros(micros), "{profile}");
    }
    let overhead = |text: &str| overhead_of(&text.parse().unwrap());
    assert_eq!(overhead("o.send=9us"), Some(Nanos::from_micros(9)));
    assert_eq!(overhead("o.send=9us,o.receive=4us"), Some(Nanos::from_micros(4)));
    assert_eq!(overhead("L=1ms"), None);
}

#[test]
fn an_overhead_is_tried_and_reported() {
    let clock = Clock::real();
    let profile: Profile = "o=20us".parse().unwrap();
    let found = crate::runtime::block_on(async { measure(&clock, &profile).await });
    let found = found.unwrap().unwrap();
    assert_eq!((found.spent.unwrap().0, found.verdict()), (Nanos::from_micros(20), Ok(())));
    let text = found.to_string();
    assert!(text.starts_with("messages cost ") && text.contains("o of 20.0 us is "), "{text}");
}

#[test]
fn a_machine_is_tried_out_and_says_how_it_was() {
    let profile: Profile = "50us/1g,back.L=20us".parse().unwrap();
    let clock = Clock::real();
    let found = crate::runtime::block_on(async { measure(&clock, &profile).await });
    let found = found.unwrap().unwrap();
    assert_eq!(found.latency, Nanos::from_micros(20));
    assert!(found.cost > Nanos::ZERO && found.late.p99 >= found.late.median, "{found:?}");
    assert!(found.to_string().starts_with("delays of 20.0 us are"), "{found}");
}

#[test]
fn in_a_world_delays_are_exact() {
    let world = crate::clock::world::World::new();
    let clock = world.clock();
    let found = world.run(async move {
        let run = Run { latency: Nanos::from_micros(10), apart: APART, messages: TRIALS };
        (run.measure(&clock).await.unwrap().0, measure(&clock, &Profile::none()).await.unwrap())
    });
    let (late, measured) = found.unwrap();
    assert_eq!((late.median, late.p99), (Nanos::ZERO, Nanos::ZERO));
    assert!(measured.is_good());
}
