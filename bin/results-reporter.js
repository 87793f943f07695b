// A reporter of vitest that writes the result of each file as soon as it has one, a JSON object a line, so that the
// results of an interrupted run still count. Lines: {planned: [path]}, {alive: true}, {ended: file}, {unhandled:
// [{path, message}]}; from tests themselves {skipped: tests}.
import { appendFileSync } from "node:fs";
import { relative } from "node:path";

/** @public Vitest loads it by its path. */
export default class ResultsReporter {
  #root = "";

  onInit(vitest) {
    this.#root = vitest.config.root;
  }

  onTestRunStart(specifications) {
    note({ planned: specifications.map(({ moduleId }) => this.#path(moduleId)) });
  }

  onTestCaseResult() {
    note({ alive: true });
  }

  onTestModuleEnd(module) {
    const tests = [...module.children.allTests()].map((test) => {
      const { state, errors = [] } = test.result();
      return { name: test.fullName, state, message: messageOf(errors) };
    });
    // Failures outside of tests: the file's own code, and hooks of its groups.
    const groups = [...module.children.allSuites()].flatMap((group) => group.errors());
    const errors = [...module.errors(), ...groups];
    note({
      ended: {
        path: this.#path(module.moduleId),
        seconds: module.diagnostic().duration / 1_000,
        tests,
        errors: errors.map((error) => messageOf([error])),
      },
    });
  }

  onTestRunEnd(_modules, unhandled) {
    const errors = unhandled.map((error) => {
      const from = error.VITEST_TEST_PATH;
      return { path: from === undefined ? null : this.#path(from), message: messageOf([error]) };
    });
    note({ unhandled: errors });
  }

  #path(file) {
    return relative(this.#root, file);
  }
}

function note(line) {
  appendFileSync(process.env.HOLDFAST_TEST_RESULTS, `${JSON.stringify(line)}\n`);
}

function messageOf(errors) {
  return errors.map((error) => [error.stack ?? error.message, error.diff].filter(Boolean).join("\n")).join("\n");
}
