import { text as textOf } from "node:stream/consumers";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { omitUndefined } from "../flag-values.ts";

interface QueryFlags {
  readonly sql?: string;
  readonly ask?: string;
  readonly database?: string;
  readonly yes?: boolean;
}

export function addQuery(query: CliCommand): void {
  query
    .argument("<service>")
    .option("--ask <question>", "let the language model write a statement, which is shown and run after you agree")
    .option("--sql <statement>", "SELECT, SHOW, EXPLAIN or DESCRIBE statement; - reads it from standard input")
    .option("--database <name>", "database; defaultdb by default")
    .option("--yes", "run the model's statement without asking")
    .example('query orders --sql "SELECT count(*) FROM customers"')
    .example("query orders --sql - --output json < report.sql")
    .example('query orders --ask "How many orders are open?"')
    .does(async (context, name: string, flags: QueryFlags) => {
      const { client, output } = context;
      const id = await context.serviceId(name);
      const database = omitUndefined({ database_name: flags.database });
      const statement = await statementOf(context, id, flags);
      const result = await client.queries.execute(id, { sql: statement, ...database });
      if (output.format !== "table") return output.show(result);
      // Column names may repeat; in a table each needs a unique one.
      const columns = result.columns.map((column, index) =>
        result.columns.indexOf(column) === index ? column : `${column}_${index + 1}`,
      );
      output.list(
        result.rows.map((row) => Object.fromEntries(row.map((value, index) => [columns[index] ?? "", value]))),
        columns,
      );
      output.info(`${result.row_count} rows in ${result.execution_ms} ms${result.truncated ? ", and more" : ""}`);
    });
}

/** The statement to run: the value of --sql, or the model's statement after the user has agreed. */
async function statementOf(
  { client, output, confirm }: Context,
  id: string,
  { sql, ask, database, yes }: QueryFlags,
): Promise<string> {
  if ((sql === undefined) === (ask === undefined)) throw new UsageError("use either --sql or --ask");
  if (sql !== undefined) return (sql === "-" ? await textOf(process.stdin) : sql).trim().replace(/;$/, "");
  const request = { question: ask ?? "", ...omitUndefined({ database_name: database }) };
  const translation = await client.queries.translate(id, request);
  for (const line of [translation.explanation, translation.warning, translation.sql]) if (line) output.info(line);
  if (translation.sql === "") throw new UsageError("the model has no statement for this question");
  await confirm("Run it?", yes);
  return translation.sql;
}
