import { readFile } from "node:fs/promises";
import type { ScriptFinding } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import { UsageError } from "../exit-code.ts";

interface AssessFlags {
  readonly all?: boolean;
}

const findingColumns = ["file", "line", "verdict", "feature", "advice"];
const featureColumns = ["feature", "count", "advice"];
const bytesMax = 262_144;

export function addTsql(tsql: CliCommand): void {
  tsql
    .command("assess <service> <files...>")
    .description("list the features of T-SQL scripts that a service limits or lacks; nothing is run")
    .option("--all", "list supported features too")
    .example("tsql assess erp schema.sql")
    .example("tsql assess erp schema.sql procedures.sql --all --output json")
    .does(async ({ client, output, serviceId }, name: string, files: readonly string[], { all }: AssessFlags) => {
      const id = await serviceId(name);
      const findings: (ScriptFinding & { readonly file: string })[] = [];
      let statements = 0;
      let truncated = false;
      for (const file of files) {
        for (const { text, lines } of partsOf(await readFile(file, "utf8"), file)) {
          const part = await client.queries.assess(id, text);
          findings.push(...part.findings.map((finding) => ({ file, ...finding, line: finding.line + lines })));
          statements += part.statements;
          truncated ||= part.truncated;
        }
      }
      const listed = all === true ? findings : findings.filter(({ verdict }) => verdict !== "supported");
      if (output.format !== "table") return output.show({ statements, findings: listed, truncated });
      output.list(listed, findingColumns);
      output.info(`${statements} statements${truncated ? "; there are more findings" : ""}`);
    });

  tsql
    .command("unsupported <service>")
    .description("list the unsupported features that T-SQL clients of a service used")
    .example("tsql unsupported erp")
    .does(async ({ client, output, serviceId }, name: string) => {
      const result = await client.queries.unsupported(await serviceId(name));
      if (output.format !== "table") return output.show(result);
      output.list(result.features, featureColumns);
      output.info(`counted since ${result.since}`);
    });
}

/** Parts of a script that one request can have: each ends at a line with GO. `lines`: number of lines before it. */
function partsOf(script: string, file: string): { readonly text: string; readonly lines: number }[] {
  const parts: { text: string; lines: number }[] = [];
  let text = "";
  let lines = 0;
  let first = 0;
  for (const batch of script.split(/(?<=^[ \t]*GO[ \t]*\r?\n)/im)) {
    if (Buffer.byteLength(batch) > bytesMax) throw new UsageError(`${file} has a batch of more than ${bytesMax} bytes`);
    if (text !== "" && Buffer.byteLength(text + batch) > bytesMax) {
      parts.push({ text, lines: first });
      [text, first] = ["", lines];
    }
    text += batch;
    lines += batch.split("\n").length - 1;
  }
  if (text.trim() !== "") parts.push({ text, lines: first });
  return parts;
}
