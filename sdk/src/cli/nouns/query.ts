import { text as textOf } from "node:stream/consumers";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { given } from "../flag-values.ts";

interface QueryFlags {
  readonly sql?: string;
  readonly ask?: string;
  readonly database?: string;
  readonly yes?: boolean;
}

export function addQuery(query: CliCommand): void {
  query
    .argument("<service>")
    .option("--ask <question>", "have the model write a statement; it is shown, and run once you agree")
    .option("--sql <statement>", "one SELECT, SHOW, EXPLAIN or DESCRIBE; - reads it from standard input")
    .option("--database <name>", "defaultdb when not given")
    .option("--yes", "run the model's statement without asking")
    .example('query orders --sql "SELECT count(*) FROM customers"')
    .example("query orders --sql - --output json < report.sql")
    .example('query orders --ask "How many orders are open?"')
    .does(async (context, name: string, flags: QueryFlags) => {
      const { client, output } = context;
      const id = await context.serviceId(name);
      const database = given({ database_name: flags.database });
      const statement = await statementOf(context, id, flags);
      const answer = await client.queries.execute(id, { sql: statement, ...database });
      if (output.format !== "table") return output.show(answer);
      // Two columns may have one name: in a table each needs its own.
      const columns = answer.columns.map((column, index) =>
        answer.columns.indexOf(column) === index ? column : `${column}_${index + 1}`,
      );
      output.list(
        answer.rows.map((row) => Object.fromEntries(row.map((value, index) => [columns[index] ?? "", value]))),
        columns,
      );
      output.say(`${answer.row_count} rows in ${answer.execution_ms} ms${answer.truncated ? ", and more" : ""}`);
    });
}

/** The statement to run: as it is given, or as the model wrote it and the user agreed to. */
async function statementOf(
  { client, output, confirm }: Context,
  id: string,
  { sql, ask, database, yes }: QueryFlags,
): Promise<string> {
  if ((sql === undefined) === (ask === undefined)) throw new UsageError("give --sql or --ask");
  if (sql !== undefined) return (sql === "-" ? await textOf(process.stdin) : sql).trim().replace(/;$/, "");
  const asked = { question: ask ?? "", ...given({ database_name: database }) };
  const translation = await client.queries.translate(id, asked);
  for (const line of [translation.explanation, translation.warning, translation.sql]) if (line) output.say(line);
  if (translation.sql === "") throw new UsageError("the model has no statement for this question");
  await confirm("Run it?", yes);
  return translation.sql;
}
