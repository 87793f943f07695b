import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inputsOf, readInputs } from "./babelfish-inputs/input.ts";
import { type AreaRates, summaryOf } from "./babelfish-inputs/rates.ts";
import { type BatchResult, runInputs } from "./babelfish-inputs/run-inputs.ts";

// The JDBC inputs of Babelfish with their expected outputs, from a checkout of babelfish_extensions at the commit of
// rates.json (npm run faults -- --babelfish DIR). With HOLDFAST_TEST_BABELFISH_RATES, the rates of the run become the
// recorded ones. The file HOLDFAST_TEST_BABELFISH_OUTPUT gets a line for each batch with other outcomes.

const checkout = process.env["HOLDFAST_TEST_BABELFISH"];
const output = process.env["HOLDFAST_TEST_BABELFISH_OUTPUT"];
const recordedFile = join(import.meta.dirname, "babelfish-inputs", "rates.json");
const suiteMs = 3_600_000;
/** Every third group of files, and the first batches of each file, stand for the rest. */
const groupStride = 3;
const fileBatches = 20;

interface Recorded {
  readonly commit: string;
  readonly rates: Readonly<Record<string, AreaRates>>;
}

describe.skipIf(checkout === undefined)("the JDBC inputs of Babelfish", () => {
  it.each(["single-db", "multi-db"] as const)(
    "in the layout %s: no area has fewer expected results than recorded",
    async (layoutMode) => {
      const groups = inputsOf(readInputs(checkout ?? ""), layoutMode)
        .filter((_, index) => index % groupStride === 0)
        .map((group) => ({
          ...group,
          files: group.files.map((file) => ({ ...file, batches: file.batches.slice(0, fileBatches) })),
        }));
      const results: BatchResult[] = [];
      await runInputs(groups, layoutMode, (result) => results.push(result));
      const rates = summaryOf(results);
      const recorded = JSON.parse(readFileSync(recordedFile, "utf8")) as Recorded;
      console.log(JSON.stringify({ layoutMode, rates }, undefined, 1));
      const different = results.filter(({ difference }) => difference !== undefined);
      if (output !== undefined)
        writeFileSync(`${output}.${layoutMode}`, different.map((result) => `${JSON.stringify(result)}\n`).join(""));
      if (process.env["HOLDFAST_TEST_BABELFISH_RATES"] !== undefined) {
        const all: Recorded = { ...recorded, rates: { ...recorded.rates, [layoutMode]: rates } };
        writeFileSync(recordedFile, `${JSON.stringify(all, undefined, 2)}\n`);
        return;
      }
      const expected = recorded.rates[layoutMode] ?? {};
      const batches = (areas: AreaRates) => Object.entries(areas).map(([area, { batches: count }]) => [area, count]);
      expect(batches(rates), `the checkout has the inputs of ${recorded.commit}`).toEqual(batches(expected));
      const fewer = Object.entries(expected).filter(([area, { passed }]) => (rates[area]?.passed ?? 0) < passed);
      expect(fewer).toEqual([]);
    },
    suiteMs,
  );
});
