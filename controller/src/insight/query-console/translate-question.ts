import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { ChatModel } from "./chat-model.ts";
import type { ConsoleRunner } from "./console-runner.ts";
import { schemaSql, tablesOf } from "./console-schema.ts";
import type { GuardThread } from "./guard-thread.ts";
import { parseTranslation, translationPrompt } from "./translation-prompt.ts";

export interface TranslatedQuestion {
  /** Empty when there is none that may run. */
  readonly sql: string;
  readonly explanation: string;
  readonly warning: string | undefined;
}

interface Deps {
  readonly model: ChatModel;
  readonly runner: ConsoleRunner;
  readonly guard: Pick<GuardThread, "judge">;
}

/** Asks the model, and holds its answer to what `execute` would say: the grammar here, the names and plan in the engine. */
export async function translateQuestion(
  { model, runner, guard }: Deps,
  { service, database, question }: { service: ManagedServiceObject; database: string; question: string },
  signal: AbortSignal,
): Promise<TranslatedQuestion> {
  const { databaseType, version } = service.spec;
  const schema = await runner.run(service, database, { sql: schemaSql(question) }, signal);
  if ("refusal" in schema) return none(schema.refusal.message);
  const rows = JSON.parse(Buffer.from(schema.rows).toString("utf8")) as unknown[][];
  const dialect = `${engineOf(databaseType)?.title ?? databaseType} ${version}`;
  const prompt = translationPrompt({ question, dialect, tables: tablesOf(rows) });
  const answer = parseTranslation(await model.ask(prompt, signal));
  if (answer === undefined) return none("The model's answer could not be read. Ask in other words.");
  const { sql, explanation } = answer;
  if (sql === "")
    return { sql, explanation, warning: answer.warning ?? "The model has no statement for the question." };
  const why = await whyNot(sql);
  return why === undefined ? answer : { sql: "", explanation, warning: `The model's statement is refused: ${why}` };

  async function whyNot(statement: string): Promise<string | undefined> {
    const judgement = await guard.judge(statement);
    if ("refused" in judgement) return judgement.refused;
    // A plan needs every name, and runs nothing. SHOW and EXPLAIN have none.
    if (!/^(SELECT|WITH|VALUES)\b/i.test(judgement.sql)) return undefined;
    const plan = { ...judgement, sql: `EXPLAIN ${judgement.sql}` };
    const answer = await runner.run(service, database, plan, signal);
    return "refusal" in answer ? answer.refusal.message : undefined;
  }
}

function none(warning: string): TranslatedQuestion {
  return { sql: "", explanation: "", warning };
}

/** Throws NOT_CONFIGURED where operators have named no model. */
export function requireModel(model: ChatModel | undefined): ChatModel {
  if (model !== undefined) return model;
  throw new HoldfastError(
    "NOT_CONFIGURED",
    "This installation has no model (HOLDFAST_MODEL_URL, HOLDFAST_MODEL_NAME, HOLDFAST_MODEL_KEY_FILE).",
  );
}
