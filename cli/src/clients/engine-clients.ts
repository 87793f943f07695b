import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { UsageError } from "../exit-code.ts";
import {
  type ConninfoFormat,
  type EngineClient,
  type Snippet,
  type SnippetLanguage,
  snippetLanguages,
} from "./engine-client.ts";
import * as engines from "./engines.ts";

type Service = Pick<ManagedService, "name" | "database_type">;

const clients: Readonly<Record<string, EngineClient>> = engines;

/** The `database_type` of an engine's name or alias. */
export function engineType(name: string): string {
  const found = Object.entries(clients).find(([, { aliases = [] }]) => aliases.includes(name));
  return found?.[0] ?? name;
}

/** Throws UsageError for an engine without a client here. */
export function engineClientOf({ name, database_type: type }: Service): EngineClient {
  const client = findClient(type);
  if (client === undefined)
    throw new UsageError(`${name} is ${type}: this version of the program has no client for it`);
  return client;
}

/** Throws UsageError for an engine without connection strings. */
export function conninfoFormatOf({ name, database_type: type }: Service): ConninfoFormat {
  const form = findConninfoFormat(type);
  if (form !== undefined) return form;
  const others = Object.keys(clients).filter((each) => findConninfoFormat(each) !== undefined);
  throw new UsageError(`${name} is ${type}: only ${others.join(" and ")} has connection strings of libpq`);
}

/** Throws UsageError for an engine without a program in the language. */
export function snippetOf(
  { name, database_type: type }: Service,
  language: SnippetLanguage,
): (values: Snippet) => string {
  const languages = snippetLanguagesOf(type);
  const print = findClient(type)?.snippets?.[language];
  if (print !== undefined) return print;
  if (languages.length > 0)
    throw new UsageError(`${name} is ${type}: --snippet has programs in ${languages.join(", ")} for it`);
  const others = Object.keys(clients).filter((each) => snippetLanguagesOf(each).length > 0);
  throw new UsageError(`${name} is ${type}: --snippet has programs for ${others.join(", ")} only`);
}

/** Languages in which there is a program for an engine. */
export function snippetLanguagesOf(type: string): SnippetLanguage[] {
  const snippets = findClient(type)?.snippets ?? {};
  return snippetLanguages.filter((language) => snippets[language] !== undefined);
}

/** Undefined for an engine without connection strings. */
export function findConninfoFormat(type: string): ConninfoFormat | undefined {
  return findClient(type)?.conninfo;
}

/** Undefined for an engine without a client here. */
export function findClient(type: string): EngineClient | undefined {
  return Object.hasOwn(clients, type) ? clients[type] : undefined;
}
