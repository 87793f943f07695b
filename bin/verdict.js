// The verdict over a file's runs: green in its first run, flaky, red, or red by quarantined tests only
// (test/quarantine.json).

/**
 * The faults of one run of a file.
 * @param {import("./vitest-run.js").FileOutcome} file
 * @param {(path: string, test: string) => boolean} isQuarantined
 * @returns {{ where: string, message: string }[]}
 */
export function faultsOf({ path, tests, errors }, isQuarantined) {
  const failed = tests.filter(({ name, state }) => state === "failed" && !isQuarantined(path, name));
  return [
    ...failed.map(({ name, message }) => ({ where: `${path} > ${name}`, message })),
    ...errors.map((message) => ({ where: path, message })),
  ];
}

/**
 * The verdict over all runs of one file, the last of which decides: green or red for the third time.
 * @param {import("./vitest-run.js").FileOutcome[]} runs
 */
export function verdictOf(runs, isQuarantined) {
  const last = runs.at(-1);
  const faults = faultsOf(last, isQuarantined);
  const passed = last.tests.filter(({ state }) => state === "passed").length;
  const quarantined = last.tests.filter(({ name, state }) => state === "failed" && isQuarantined(last.path, name));
  const before = faults.length > 0 ? [] : runs.slice(0, -1).flatMap((run) => faultsOf(run, isQuarantined));
  return {
    passed,
    failures: faults.map(({ where, message }) => `${where}\n${readable(message)}`),
    flaky: [...new Map(before.map(({ where, message }) => [where, `${where}: ${firstLine(message)}`])).values()],
    quarantined: quarantined.map(({ name, message }) => `${last.path} > ${name}: ${firstLine(message)}`),
  };
}

const maxLines = 200;
const maxLineLength = 500;

/** The full text without the frames of packages. */
export function readable(message) {
  return message
    .split("\n")
    .filter((line) => !line.includes("node_modules"))
    .slice(0, maxLines)
    .map((line) => `    ${line.slice(0, maxLineLength)}`)
    .join("\n");
}

function firstLine(message) {
  return message.split("\n", 1)[0].slice(0, maxLineLength);
}
