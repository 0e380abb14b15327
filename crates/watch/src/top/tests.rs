use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::table::Kind;

fn operation(name: &str, calls_per_s: f64) -> Row {
    Row {
        name: name.to_owned(),
        cells: vec![Some(calls_per_s), Some(2.0)],
        calls_per_s: Some(calls_per_s),
        ms: Some(2.0),
        parts: vec![("queue".into(), 0.5), ("network and server".into(), 1.5)],
        is_sum: name == "all",
        below: None,
    }
}

fn tables(rates: &[(&str, f64)]) -> Vec<Table> {
    let columns = [("mount", Kind::Name), ("calls/s", Kind::Number), ("exec ms", Kind::Ms)];
    let mut mounts = Table::new("mounts", &columns);
    for (name, rate) in rates {
        let mut inside = Table::new(format!("server:/export on {name}"), &columns);
        inside.rows = vec![
            operation("READ", rate / 2.0),
            operation("all", *rate),
            operation("GETATTR", rate / 4.0),
        ];
        inside.notes.push("answered by caches: 80 % of bytes read".to_owned());
        let row = operation(name, *rate);
        mounts.rows.push(Row { below: Some(Box::new(inside)), ..row });
    }
    let mut server = Table::new("the kernel's server", &columns);
    server.rows.push(operation("getattr v3", 7.0));
    vec![mounts, server]
}

fn shown(state: &mut State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| state.draw(frame)).unwrap();
    terminal.backend().to_string()
}

fn names(state: &State) -> Vec<&str> {
    state.rows().into_iter().map(|row| row.name.as_str()).collect()
}

fn started() -> State {
    let mut state = State::new("host");
    state.update(tables(&[("/a", 1.0), ("/b", 40.0), ("/c", 8.0)]), "12:00:00", Vec::new());
    state.update(tables(&[("/a", 1.0), ("/b", 40.0), ("/c", 8.0)]), "12:00:01", Vec::new());
    state.update(tables(&[("/a", 4.0), ("/b", 20.0), ("/c", 8.0)]), "12:00:02", Vec::new());
    state
}

fn press(state: &mut State, keys: &[Key]) {
    for key in keys {
        assert_eq!(state.key(*key), Next::GoOn, "{key:?}");
    }
}

#[test]
fn mounts_are_shown_in_eighty_columns() {
    assert_snapshot!(shown(&mut started(), 80, 24));
}

#[test]
fn a_mount_is_looked_into_and_left_again() {
    let mut state = started();
    press(&mut state, &[Key::Down, Key::Enter]);
    assert_eq!(names(&state), ["all", "READ", "GETATTR"], "the sum is first");
    assert_snapshot!(shown(&mut state, 80, 24));
    press(&mut state, &[Key::Escape]);
    assert_eq!(state.selected.as_deref(), Some("/c"), "the cursor is where it was");
}

#[test]
fn rows_are_sorted_by_any_column_both_ways() {
    let mut state = started();
    assert_eq!(names(&state), ["/b", "/c", "/a"]);
    press(&mut state, &[Key::Char('r')]);
    assert_eq!(names(&state), ["/a", "/c", "/b"]);
    press(&mut state, &[Key::Left]);
    assert_eq!(names(&state), ["/a", "/b", "/c"], "names in their order");
    press(&mut state, &[Key::Left, Key::Right, Key::Right, Key::Right, Key::Right]);
    assert_eq!(state.order().column, 0, "around");
}

#[test]
fn a_filter_leaves_names_that_have_it_and_the_cursor_on_one() {
    let mut state = started();
    press(&mut state, &[Key::Char('/'), Key::Char('q'), Key::Backspace, Key::Char('C')]);
    assert_eq!((names(&state), state.selected.as_deref()), (vec!["/c"], Some("/c")));
    assert!(shown(&mut state, 80, 24).contains("names with: C_"));
    press(&mut state, &[Key::Enter]);
    assert!(shown(&mut state, 80, 24).contains("[names with C]"));
    press(&mut state, &[Key::Char('/'), Key::Escape]);
    assert_eq!(names(&state).len(), 3);
}

#[test]
fn paused_the_numbers_stay_and_the_history_goes_on() {
    let mut state = started();
    press(&mut state, &[Key::Char('p')]);
    state.update(tables(&[("/a", 99.0)]), "12:00:03", Vec::new());
    assert_eq!(names(&state).len(), 3);
    assert!(shown(&mut state, 80, 24).contains("12:00:02  PAUSED"));
    let samples = state.history.of(0, None, "/a").unwrap();
    assert_eq!(samples.calls_per_s, [1.0, 4.0, 99.0]);
    press(&mut state, &[Key::Char(' ')]);
    state.update(tables(&[("/a", 5.0)]), "12:00:04", Vec::new());
    assert_eq!(names(&state), ["/a"]);
}

#[test]
fn a_mount_that_goes_away_takes_its_table_with_it() {
    let mut state = started();
    press(&mut state, &[Key::Enter]);
    assert_eq!(state.inside.as_deref(), Some("/b"));
    state.update(tables(&[("/a", 1.0)]), "12:00:03", Vec::new());
    assert_eq!((state.inside.as_deref(), state.selected.as_deref()), (None, Some("/a")));
    state.update(Vec::new(), "12:00:04", vec!["/proc/self/mountstats: gone".to_owned()]);
    assert!(shown(&mut state, 80, 24).contains("nothing to show: /proc/self/mountstats: gone"));
    press(&mut state, &[Key::Down, Key::End, Key::Enter, Key::Tab, Key::Char('s')]);
}

#[test]
fn where_nothing_is_mounted_or_served_that_is_what_is_shown() {
    let mut state = State::new("host");
    assert!(shown(&mut state, 80, 24).contains("nothing to show: waiting for a sample"));
    state.update(Vec::new(), "12:00:00", Vec::new());
    assert!(shown(&mut state, 80, 24).contains("no NFS mount here, and no server"));
    state.update(tables(&[("/a", 1.0)]), "12:00:01", Vec::new());
    assert!(shown(&mut state, 80, 24).contains("since the beginning"), "one that came later");
}

#[test]
fn tables_follow_each_other_and_help_is_a_page_of_its_own() {
    let mut state = started();
    press(&mut state, &[Key::Tab]);
    assert!(shown(&mut state, 80, 24).contains("[2 of 2] the kernel's server"));
    press(&mut state, &[Key::Tab, Key::Char('h')]);
    assert_snapshot!(shown(&mut state, 80, 24));
    press(&mut state, &[Key::Enter]);
    assert_eq!(state.inside, None, "a key that ends the help does nothing else");
    assert_eq!(state.key(Key::Char('q')), Next::Quit);
}

#[test]
fn any_size_is_drawn_with_the_cursor_in_it() {
    let many: Vec<(String, f64)> =
        (0..100).map(|number| (format!("/mnt/{number:03}"), f64::from(number))).collect();
    let many: Vec<(&str, f64)> = many.iter().map(|(name, rate)| (name.as_str(), *rate)).collect();
    let mut state = State::new("host");
    state.update(tables(&many), "12:00:00", Vec::new());
    state.update(tables(&many), "12:00:01", Vec::new());
    for height in 1..30 {
        for width in [1, 2, 7, 13, 20, 40, 79, 80, 200] {
            press(&mut state, &[Key::PageDown]);
            let picture = shown(&mut state, width, height);
            let selected = state.selected.clone().unwrap();
            if height > 6 && width > 20 {
                assert!(picture.contains(&selected), "{width}x{height} {selected}:\n{picture}");
            }
        }
        press(&mut state, &[Key::Home, Key::Char('h')]);
        shown(&mut state, 10, height);
        press(&mut state, &[Key::Char('h'), Key::End]);
    }
}

#[test]
fn the_history_has_its_bounds() {
    let mut history = History::default();
    for _ in 0..history::SAMPLES_MAX + 5 {
        history.add(&tables(&[("/a", 1.0)]));
    }
    assert_eq!(history.of(0, None, "/a").unwrap().ms.len(), history::SAMPLES_MAX);
    assert!(history.of(0, Some("/a"), "READ").is_some());
    for _ in 0..=history::SAMPLES_MAX {
        history.add(&[]);
    }
    assert!(history.of(0, None, "/a").is_none());
}
