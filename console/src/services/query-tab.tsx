import { useState } from "preact/hooks";
import type { QueryResult } from "@holdfast/sdk/responses.ts";
import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { Empty, ErrorNotice, Notice } from "../parts/notice.tsx";
import { Card, CopyButton } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { cellText, csvOf } from "./query-view.ts";
import { visibleText } from "./logs-view.ts";
import { consoleEngineOf } from "./engines/engines.ts";
import type { TabProps } from "./tab-props.ts";

/** A form that runs one read-only statement. The server checks that the statement is read-only. */
export function QueryTab({ service }: TabProps) {
  const [result, setResult] = useState<QueryResult | undefined>();
  const form = useForm({ sql: consoleEngineOf(service.database_type).firstQuery ?? "", database: "" });
  const run = () =>
    form.submit(async ({ sql, database }) => {
      const choice = database === "" ? {} : { database_name: database };
      setResult(await account.value.client.queries.execute(service.id, { sql, ...choice }));
    });
  return (
    <>
      <Card title="Query console">
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            run();
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            run();
          }}
        >
          <Notice>One statement that only reads; anything else is refused before it runs.</Notice>
          <TextField
            label="Statement"
            help="Ctrl+Enter runs it"
            lines
            value={form.values.sql}
            onInput={(value) => form.set("sql", value)}
            fault={form.fault("sql")}
          />
          <TextField
            label="Database"
            help="Empty for the default database"
            value={form.values.database}
            onInput={(value) => form.set("database", value)}
            fault={form.fault("database_name")}
          />
          <ErrorNotice error={form.error} />
          <div class="row">
            <Button kind="primary" type="submit" busy={form.isBusy} refusal={refusalOf("services:data")}>
              Run
            </Button>
          </div>
        </form>
      </Card>
      {result && <Result result={result} />}
    </>
  );
}

function Result({ result }: { readonly result: QueryResult }) {
  const title = `${result.row_count} ${result.row_count === 1 ? "row" : "rows"} in ${result.execution_ms} ms`;
  return (
    <Card
      title={title}
      flush
      actions={
        <span class="row">
          {result.truncated && <span class="quiet small">cut at the limit</span>}
          <CopyButton text={csvOf(result)} label="Copy as CSV" />
        </span>
      }
    >
      {result.rows.length === 0 ? (
        <Empty icon="search" title="No rows" />
      ) : (
        <table class="table">
          <caption class="visually-hidden">{title}</caption>
          <thead>
            <tr>
              {result.columns.map((column, index) => (
                <th key={index} scope="col">
                  {visibleText(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {result.rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column} class={cell === null ? "cell-null" : "mono small"}>
                    {cellText(cell)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}
