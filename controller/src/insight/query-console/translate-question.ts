import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { ChatModel } from "./chat-model.ts";
import type { ConsoleRunner } from "./console-runner.ts";
import type { EngineConsole } from "./engine-console.ts";
import type { GuardThreads } from "./guard-thread.ts";
import { parseTranslation, translationPrompt } from "./translation-prompt.ts";

export interface TranslatedQuestion {
  /** The statement; empty if the model has none that may run. */
  readonly sql: string;
  readonly explanation: string;
  readonly warning: string | undefined;
}

export interface TranslationRequest {
  readonly service: ManagedServiceObject;
  readonly engine: EngineConsole;
  readonly database: string;
  readonly question: string;
}

interface Deps {
  readonly model: ChatModel;
  readonly runner: ConsoleRunner;
  readonly guards: Pick<GuardThreads, "of">;
}

/**
 * Translates a question by the model, and checks the statement in the same way as `executeQuery`: the grammar here,
 * names and plan by EXPLAIN in the engine.
 */
export async function translateQuestion(
  { model, runner, guards }: Deps,
  request: TranslationRequest,
  signal: AbortSignal,
): Promise<TranslatedQuestion> {
  const { service, engine, database, question } = request;
  const { databaseType, version } = service.spec;
  const schema = await runner.run(service, database, { sql: engine.schemaSql(question) }, signal);
  if ("refusal" in schema) return withoutSql(schema.refusal.message);
  const rows = JSON.parse(Buffer.from(schema.rows).toString("utf8")) as unknown[][];
  const dialect = `${engineOf(databaseType)?.title ?? databaseType} ${version}`;
  const prompt = translationPrompt({ question, dialect, tables: engine.tablesOf(rows) });
  const result = parseTranslation(await model.complete(prompt, signal));
  if (result === undefined) return withoutSql("The model's response could not be parsed. Rephrase the question.");
  const { sql, explanation } = result;
  if (sql === "")
    return { sql, explanation, warning: result.warning ?? "The model has no statement for the question." };
  const refusal = await refusalOf(sql);
  return refusal === undefined
    ? result
    : { sql: "", explanation, warning: `The model's statement is refused: ${refusal}` };

  async function refusalOf(statement: string): Promise<string | undefined> {
    const verdict = await guards.of(engine).check(statement);
    if ("refused" in verdict) return verdict.refused;
    const explained = engine.explain(verdict.sql);
    if (explained === undefined) return undefined;
    const result = await runner.run(service, database, { ...verdict, sql: explained }, signal);
    return "refusal" in result ? result.refusal.message : undefined;
  }
}

function withoutSql(warning: string): TranslatedQuestion {
  return { sql: "", explanation: "", warning };
}

/** Returns the model. Throws NOT_CONFIGURED if operators have configured none. */
export function requireModel(model: ChatModel | undefined): ChatModel {
  if (model !== undefined) return model;
  throw new HoldfastError(
    "NOT_CONFIGURED",
    "This installation has no language model. An operator can set HOLDFAST_MODEL_URL, HOLDFAST_MODEL_NAME and HOLDFAST_MODEL_KEY_FILE.",
  );
}
