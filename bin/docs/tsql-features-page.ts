import { features } from "../../tds/src/parse/features.ts";
import { table } from "./pages.ts";

/** The page of the features of T-SQL, with the error number of each unsupported one. */
export function tsqlFeaturesPage(): string {
  const rowsOf = (verdict: string) => [...features].filter(([, row]) => row.verdict === verdict);
  const refused = rowsOf("unsupported").map(([name, { number = 0, advice }]) => [name, String(number), advice]);
  return [
    "# Features of T-SQL",
    "",
    "The features that services of type [`tsql`](../how-to/tsql.md) support, limit and lack.",
    "`holdfast tsql assess SERVICE FILES` finds them in scripts without running anything, and",
    "`holdfast tsql unsupported SERVICE` counts the unsupported ones that clients used.",
    "",
    "## Unsupported",
    "",
    "Each use is an error with this number, and with the advice as its text.",
    "",
    ...table(["feature", "error", "advice"], refused),
    "",
    "## Limited",
    "",
    ...table(
      ["feature", "limits"],
      rowsOf("limited").map(([name, { advice }]) => [name, advice]),
    ),
    "",
    "## Supported",
    "",
    ...table(
      ["feature", "remark"],
      rowsOf("supported").map(([name, { advice }]) => [name, advice]),
    ),
    "",
  ].join("\n");
}
