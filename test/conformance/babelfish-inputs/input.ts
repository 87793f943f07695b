import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Outcome } from "@holdfast/testing/servers/tds-outcomes.ts";

export interface InputBatch {
  readonly sql: string;
  readonly expected: readonly Outcome[];
}

/** A file of inputs with the outcomes that Babelfish records for it. */
export interface InputFile {
  readonly name: string;
  readonly area: string;
  readonly batches: readonly InputBatch[];
}

/** Files that share objects, such as `x-vu-prepare`, `x-vu-verify` and `x-vu-cleanup`, in their order. */
export interface InputGroup {
  readonly name: string;
  readonly area: string;
  readonly files: readonly InputFile[];
}

/** Inputs that are not about T-SQL as the specification supports it, by their text. */
const outside: readonly RegExp[] = [
  // Babelfish itself, and functions of PostgreSQL.
  /\b(?:set_config|current_setting|pg_typeof|inject_fault\w*)\b|babelfishpg_|\bpg_(?:catalog|class|proc|namespace)\b|\bbabelfish_\w*explain|set\s+babelfish_|sp_babelfish/i,
  /\b(?:create|alter|drop)\s+(?:login|user|role)\b/i,
  /\bgeo(?:metry|graphy)\b/i,
  /\b(?:sp_addlinkedserver|openquery|openrowset|opendatasource|fulltext)\b|\bcontains\s*\(/i,
];
const outsideAreas = ["full_text_search", "pg_hint_plan", "pg_regress"];
const createsDatabase = /\b(?:create|alter)\s+database\b/i;

const phases = ["prepare", "verify", "cleanup"];
const phasePattern = /(?:-vu)?-(prepare|verify|cleanup)$/;

/**
 * Reads the inputs of `test/JDBC` in a checkout of babelfish_extensions: files of batches between lines of GO, except
 * those that its own schedule ignores.
 */
export function readInputs(checkout: string): InputGroup[] {
  const root = join(checkout, "test", "JDBC");
  const schedule = readFileSync(join(root, "jdbc_schedule"), "utf8");
  const ignored = new Set([...schedule.matchAll(/^ignore#!#(\S+)/gm)].map(([, name]) => name));
  const groups = new Map<string, { area: string; files: InputFile[] }>();
  for (const entry of readdirSync(join(root, "input"), { recursive: true, encoding: "utf8" }).toSorted()) {
    const path = entry.split("/");
    const [, name] = /^(.*)\.sql$/.exec(path.at(-1) ?? "") ?? [];
    if (name === undefined || ignored.has(name)) continue;
    const output = join(root, "expected", `${name}.out`);
    if (!existsSync(output)) continue;
    const area = areaOf(path);
    const batches = batchesOf(readFileSync(join(root, "input", entry), "utf8"), readFileSync(output, "utf8"));
    const key = name.replace(phasePattern, "");
    const group = groups.get(key) ?? { area, files: [] };
    groups.set(key, group);
    group.files.push({ name, area, batches });
  }
  const phase = ({ name }: InputFile) => phases.indexOf(phasePattern.exec(name)?.[1] ?? "");
  return [...groups].map(([name, { area, files }]) => ({
    name,
    area,
    files: files.toSorted((left, right) => phase(left) - phase(right)),
  }));
}

/** The inputs that services of a layout can run: a service of the layout single-db has one database. */
export function inputsOf(groups: readonly InputGroup[], layoutMode: "single-db" | "multi-db"): InputGroup[] {
  return groups.filter(({ area, files }) => {
    const text = files.flatMap(({ batches }) => batches.map(({ sql }) => sql)).join("\n");
    if (outsideAreas.includes(area) || outside.some((pattern) => pattern.test(text))) return false;
    return layoutMode === "multi-db" || !createsDatabase.test(text);
  });
}

/** The folder of a file; files outside of folders are by their names. */
function areaOf(path: readonly string[]): string {
  const [folder = "", ...rest] = path;
  if (rest.length > 0) return folder;
  if (/^BABEL/i.test(folder)) return "reported problems";
  return /^(?:sys|isc|information)/i.test(folder) ? "catalog" : "statements";
}

/** Splits an input, and the output that repeats its lines, into batches. Ends where the two differ. */
function batchesOf(input: string, output: string): InputBatch[] {
  const text = output.replaceAll("\r\n", "\n");
  const batches: { sql: string; expected: Outcome[] }[] = [];
  let sql = "";
  let position = 0;
  let start: number | undefined;
  const close = (end: number) => {
    const last = batches.at(-1);
    if (start !== undefined && last !== undefined) last.expected = outcomesOf(text.slice(start, end));
  };
  for (const line of input.replaceAll("\r\n", "\n").split("\n")) {
    if (
      line === "" ||
      line.startsWith("#") ||
      /^-- (?:sla|parallel_query_expected|single_db_mode_expected)/i.test(line)
    )
      continue;
    if (!/^go$/i.test(line)) {
      sql += `${line}\n`;
      continue;
    }
    const at = text.indexOf(`${sql}${line}\n`, position);
    if (at < 0) {
      batches.pop();
      return batches;
    }
    close(at);
    position = at + sql.length + line.length + 1;
    start = position;
    batches.push({ sql, expected: [] });
    sql = "";
  }
  close(text.length);
  return batches;
}

function outcomesOf(text: string): Outcome[] {
  const outcomes: Outcome[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    if (line === "~~START~~") {
      const types = (lines[++at] ?? "").split("#!#");
      const rows: string[][] = [];
      for (at++; at < lines.length && lines[at] !== "~~END~~" && !(lines[at] ?? "").startsWith("~~ERROR (Code"); at++)
        rows.push((lines[at] ?? "").split("#!#"));
      outcomes.push({ kind: "rows", types, rows });
      if (lines[at] !== "~~END~~") at--;
      continue;
    }
    const [, count] = /^~~ROW COUNT: (\d+)~~$/.exec(line) ?? [];
    if (count !== undefined) outcomes.push({ kind: "count", count: Number(count) });
    const [, number] = /^~~ERROR \(Code: (\d+)\)~~$/.exec(line) ?? [];
    if (number === undefined) continue;
    const [, message = ""] = /^~~ERROR \(Message: (.*)/.exec(lines[at + 2] ?? "") ?? [];
    outcomes.push({ kind: "error", number: Number(number), message: message.replace(/\)~~$/, "") });
  }
  return outcomes;
}
