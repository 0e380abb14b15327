"""What scripts of checks share: each check has its own folder; "ok NAME" or "FAIL NAME: why" a line."""
import errno, os, sys, traceback

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def fails(number, function, *arguments, **named):
    """The call must fail with exactly this error."""
    try:
        function(*arguments, **named)
    except OSError as error:
        assert error.errno == number, f"{errno.errorcode[number]} expected, got {error}"
        return
    raise AssertionError(f"{errno.errorcode[number]} expected, but it was done")


def same(got, expected, what):
    if isinstance(got, set) and isinstance(expected, set) and len(expected) > 5:
        assert got == expected, f"{what}: missing {sorted(expected - got)[:5]}, too many {sorted(got - expected)[:5]}"
    assert got == expected, f"{what}: {got!r}, not {expected!r}"


def write(path, data, mode=0o644):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(parser, left_out=lambda options: []):
    """Runs the checks, or those of `--only`, in the folder of the first argument."""
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    failed = 0
    for function in CHECKS:
        name = function.__name__
        if (only and name not in only) or name in left_out(options):
            continue
        folder = os.path.join(options.folder, name)
        try:
            os.mkdir(folder)
            os.chdir(folder)
            function(options)
            print(f"ok {name}", flush=True)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)
            line = ([frame.lineno for frame in where if frame.filename == sys.argv[0]] or [where[-1].lineno])[-1]
            print(f"FAIL {name}: {type(error).__name__}: {error} (line {line})", flush=True)
            failed += 1
    sys.exit(1 if failed else 0)
