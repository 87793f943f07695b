import { useMemo, useState } from "preact/hooks";
import type { QueryResult, Translation } from "@holdfast/sdk/responses.ts";
import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { FormFaults } from "../parts/form-faults.tsx";
import { Empty, Notice } from "../parts/notice.tsx";
import { Age, Card, CopyButton } from "../parts/parts.tsx";
import { SubmitForm } from "../parts/submit-form.tsx";
import { useForm } from "../parts/use-form.ts";
import { consoleEngineOf } from "../services/engines/engines.ts";
import type { TabProps } from "../services/tab-props.ts";
import { account, refusalOf } from "../session/account.ts";
import { type HistoryEntry, historyOf, remember } from "./query-history.ts";
import { csvOf, jsonOf, schemaOf } from "./query-view.ts";
import { ResultTable } from "./result-table.tsx";
import { SqlField } from "./sql-field.tsx";

/** A form that runs one read-only statement. The server checks that the statement is read-only. */
export function QueryTab({ service: { id, database_type: type } }: TabProps) {
  const { queries } = account.value.client;
  const { firstQuery = "", sql: syntax } = consoleEngineOf(type);
  const [result, setResult] = useState<QueryResult | undefined>();
  const form = useForm({ sql: firstQuery, database: "" });
  const refusal = refusalOf("services:data");
  const choice = form.values.database === "" ? {} : { database_name: form.values.database };
  const run = () => {
    if (refusal !== undefined) return;
    form.submit(async ({ sql, database }) => {
      const entry = (outcome: string): HistoryEntry => ({ sql, database, time: new Date().toISOString(), outcome });
      // The rows of an earlier statement are not those of a statement that fails.
      setResult(undefined);
      try {
        const found = await queries.execute(id, { sql, ...choice });
        setResult(found);
        remember(id, entry(titleOf(found)));
      } catch (error) {
        remember(id, entry(error instanceof Error ? error.message : "failed"));
        throw error;
      }
    });
  };
  const loadSchema = async () =>
    syntax === undefined || refusal !== undefined
      ? {}
      : schemaOf(await queries.execute(id, { sql: syntax.schemaQuery, ...choice }), syntax.defaultSchema);
  const [replacement, setReplacement] = useState({ text: firstQuery });
  const use = ({ sql, database }: Pick<HistoryEntry, "sql" | "database">) => {
    setReplacement({ text: sql });
    form.set("sql", sql);
    form.set("database", database);
  };
  // Each key in the editor renders this component again, but not the cells of the result.
  const table = useMemo(() => result && <Result result={result} />, [result]);
  return (
    <>
      <Question
        serviceId={id}
        database={form.values.database}
        onStatement={(sql) => use({ sql, database: form.values.database })}
      />
      <Card title="Query console">
        <SubmitForm class="stack" refusal={refusal} onSubmit={run}>
          <Notice>One statement that only reads; anything else is refused before it runs.</Notice>
          <SqlField
            value={form.values.sql}
            replacement={replacement}
            onInput={(text) => form.set("sql", text)}
            onRun={run}
            dialect={syntax?.dialect ?? "StandardSQL"}
            loadSchema={loadSchema}
            fault={form.fault("sql")}
          />
          <TextField
            label="Database"
            help="Empty for the default database"
            {...form.field("database", "database_name")}
            autocomplete="off"
          />
          <FormFaults form={form} />
          <div class="row">
            <Button kind="primary" type="submit" busy={form.isBusy} refusal={refusal}>
              Run
            </Button>
          </div>
        </SubmitForm>
      </Card>
      {table}
      <History entries={historyOf(id)} onUse={use} />
    </>
  );
}

interface QuestionProps {
  readonly serviceId: string;
  readonly database: string;
  readonly onStatement: (sql: string) => void;
}

/** A question that the installation's language model translates to a statement. Nothing runs by itself. */
function Question({ serviceId, database, onStatement }: QuestionProps) {
  const [translation, setTranslation] = useState<Translation | undefined>();
  const form = useForm({ question: "" });
  return (
    <Card title="Question in words">
      <FormBody
        form={form}
        action="Write the statement"
        refusal={refusalOf("services:data") ?? (form.values.question === "" ? "Write a question first." : undefined)}
        send={async ({ question }) => {
          const choice = database === "" ? {} : { database_name: database };
          const translated = await account.value.client.queries.translate(serviceId, { question, ...choice });
          setTranslation(translated);
          if (translated.sql !== "") onStatement(translated.sql);
        }}
      >
        <TextField
          label="Question"
          help="The installation's language model gets the question and names of tables, and never a row"
          {...form.field("question")}
          autocomplete="off"
        />
        {translation && (
          <>
            {translation.warning !== null && <Notice tone="warn">{translation.warning}</Notice>}
            <p>{translation.explanation}</p>
            {translation.sql !== "" && <p class="quiet">The statement is in the editor. Read it, then run it.</p>}
          </>
        )}
      </FormBody>
    </Card>
  );
}

function titleOf({ row_count: rows, execution_ms: ms }: QueryResult): string {
  return `${rows} ${rows === 1 ? "row" : "rows"} in ${ms} ms`;
}

function Result({ result }: { readonly result: QueryResult }) {
  const title = titleOf(result);
  return (
    <Card
      title={title}
      actions={
        <span class="row">
          {result.truncated && <span class="quiet small">cut at the limit</span>}
          <CopyButton text={csvOf(result)} label="Copy as CSV" title="CSV" />
          <CopyButton text={jsonOf(result)} label="Copy as JSON" title="JSON" />
        </span>
      }
    >
      {result.rows.length === 0 ? (
        <Empty icon="search" title="No rows" />
      ) : (
        <ResultTable key={`${title} ${result.columns.join()}`} result={result} title={title} />
      )}
    </Card>
  );
}

interface HistoryProps {
  readonly entries: readonly HistoryEntry[];
  readonly onUse: (entry: HistoryEntry) => void;
}

/** Statements of this tab, newest first; a click returns one to the editor. */
function History({ entries, onUse }: HistoryProps) {
  if (entries.length === 0) return null;
  return (
    <Card title="History of this tab">
      <ul class="statements">
        {entries.map((entry) => (
          <li key={`${entry.database} ${entry.sql}`}>
            <button type="button" onClick={() => onUse(entry)}>
              <code>{entry.sql}</code>
              <span class="quiet small">
                {entry.outcome}, <Age time={entry.time} />
              </span>
            </button>
          </li>
        ))}
      </ul>
    </Card>
  );
}
