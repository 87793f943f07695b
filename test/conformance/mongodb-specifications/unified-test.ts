import { lookUp } from "@holdfast/common/look-up.ts";
import { BSON, type Collection, type Db, type MongoClient } from "mongodb";
import { matches } from "./matches.ts";

/** A file of tests in the unified format of mongodb/specifications. */
export interface UnifiedFile {
  readonly description: string;
  readonly runOnRequirements?: readonly Requirement[];
  readonly createEntities: readonly Readonly<Record<string, Entity>>[];
  readonly initialData?: readonly CollectionData[];
  readonly tests: readonly UnifiedTest[];
}

interface UnifiedTest {
  readonly description: string;
  readonly runOnRequirements?: readonly Requirement[];
  readonly operations: readonly Operation[];
  readonly outcome?: readonly CollectionData[];
}

interface Requirement {
  readonly minServerVersion?: string;
  readonly maxServerVersion?: string;
  readonly topologies?: readonly string[];
}

interface Entity {
  readonly id: string;
  readonly database?: string;
  readonly databaseName?: string;
  readonly collectionName?: string;
  readonly collectionOptions?: object;
}

interface CollectionData {
  readonly collectionName: string;
  readonly databaseName: string;
  readonly documents: readonly object[];
}

interface Operation {
  readonly name: string;
  readonly object: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly expectResult?: unknown;
  readonly expectError?: ExpectedError;
  readonly saveResultAsEntity?: string;
}

interface ExpectedError {
  readonly isClientError?: boolean;
  readonly errorCode?: number;
  readonly errorContains?: string;
}

/** `skipped` has the reason, `failed` the difference. */
export type Outcome = "passed" | { readonly skipped: string } | { readonly failed: string };

type Arguments = Readonly<Record<string, unknown>>;
type Call = (target: Target, all: Arguments) => Promise<unknown>;
interface Target {
  readonly database: Db;
  readonly collection: Collection;
}

/** The options of an operation: its arguments without those that the driver's method has as parameters. */
function optionsOf(all: Arguments, ...parameters: readonly string[]): object {
  const entries = Object.entries(all).filter(([name]) => !parameters.includes(name));
  return Object.fromEntries(
    entries.map(([name, value]) => [name, name === "returnDocument" ? String(value).toLowerCase() : value]),
  );
}

const changing = (method: string, change: string) => (all: Arguments) => ({
  method,
  parameters: [all["filter"], all[change]],
  options: optionsOf(all, "filter", change),
});
const filtering = (method: string) => (all: Arguments) => ({
  method,
  parameters: [all["filter"] ?? {}],
  options: optionsOf(all, "filter"),
});

/** Methods of the driver's collections, by the operations that they are. */
const methods: Readonly<
  Record<string, (all: Arguments) => { method: string; parameters: readonly unknown[]; options: object }>
> = {
  countDocuments: filtering("countDocuments"),
  deleteMany: filtering("deleteMany"),
  deleteOne: filtering("deleteOne"),
  findOne: filtering("findOne"),
  findOneAndDelete: filtering("findOneAndDelete"),
  findOneAndReplace: changing("findOneAndReplace", "replacement"),
  findOneAndUpdate: changing("findOneAndUpdate", "update"),
  replaceOne: changing("replaceOne", "replacement"),
  updateMany: changing("updateMany", "update"),
  updateOne: changing("updateOne", "update"),
  bulkWrite: (all) => ({
    method: "bulkWrite",
    parameters: [all["requests"]],
    options: optionsOf(all, "requests"),
  }),
  createIndex: (all) => ({ method: "createIndex", parameters: [all["keys"]], options: optionsOf(all, "keys") }),
  distinct: (all) => ({
    method: "distinct",
    parameters: [all["fieldName"], all["filter"] ?? {}],
    options: optionsOf(all, "fieldName", "filter"),
  }),
  estimatedDocumentCount: (all) => ({ method: "estimatedDocumentCount", parameters: [], options: all }),
  insertMany: (all) => ({
    method: "insertMany",
    parameters: [all["documents"]],
    options: optionsOf(all, "documents"),
  }),
  insertOne: (all) => ({ method: "insertOne", parameters: [all["document"]], options: optionsOf(all, "document") }),
};

/** Operations that are more than one method of the driver. */
const others: Readonly<Record<string, Call>> = {
  find: ({ collection }, all) => collection.find(all["filter"] ?? {}, optionsOf(all, "filter")).toArray(),
  count: async ({ database, collection }, all) => {
    const command = { count: collection.collectionName, query: all["filter"] ?? {}, ...optionsOf(all, "filter") };
    return (await database.command(command))["n"] as unknown;
  },
};

/** Runs the tests of a file, in order, against a server of this version. */
export async function runUnifiedFile(
  client: MongoClient,
  file: UnifiedFile,
  version: string,
): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  for (const test of file.tests) {
    const unmet = unmetOf(file.runOnRequirements, version) ?? unmetOf(test.runOnRequirements, version);
    const outcome = unmet === undefined ? await runTest(client, file, test) : { skipped: unmet };
    outcomes.set(test.description, outcome);
  }
  return outcomes;
}

function unmetOf(requirements: readonly Requirement[] | undefined, version: string): string | undefined {
  if (requirements === undefined || requirements.some((each) => isMet(each, version))) return undefined;
  return "another version or topology";
}

function isMet({ minServerVersion, maxServerVersion, topologies }: Requirement, version: string): boolean {
  if (minServerVersion !== undefined && compare(version, minServerVersion) < 0) return false;
  if (maxServerVersion !== undefined && compare(version, maxServerVersion) > 0) return false;
  return topologies?.includes("single") ?? true;
}

/** Compares as many parts as the second version has. */
function compare(first: string, second: string): number {
  const [left, right] = [first, second].map((each) => each.split(".").map(Number));
  for (const [index, part] of (right ?? []).entries()) if (left?.[index] !== part) return (left?.[index] ?? 0) - part;
  return 0;
}

async function runTest(client: MongoClient, file: UnifiedFile, test: UnifiedTest): Promise<Outcome> {
  const missing = test.operations.find((operation) => callOf(operation) === undefined);
  if (missing !== undefined) return { skipped: `operation ${missing.name}` };
  try {
    for (const data of file.initialData ?? []) await fill(client, data);
    const targets = targetsOf(client, file);
    for (const operation of test.operations) {
      const difference = await differenceOf(operation, targets);
      if (difference !== undefined) return { failed: `${operation.name}: ${difference}` };
    }
    for (const { databaseName, collectionName, documents } of test.outcome ?? []) {
      const found = await client.db(databaseName).collection(collectionName).find().sort({ _id: 1 }).toArray();
      if (!matches(documents, found, "exact")) return { failed: `documents ${textOf(found)}` };
    }
    return "passed";
  } catch (error) {
    return { failed: String(error) };
  }
}

async function fill(client: MongoClient, { databaseName, collectionName, documents }: CollectionData): Promise<void> {
  const collection = client.db(databaseName).collection(collectionName);
  await collection.drop().catch(() => undefined);
  if (documents.length > 0) await collection.insertMany(documents.map((document) => ({ ...document })));
}

function targetsOf(client: MongoClient, { createEntities }: UnifiedFile): ReadonlyMap<string, Target> {
  const targets = new Map<string, Target>();
  for (const { database: ofDatabase, collection: ofCollection } of createEntities) {
    if (ofDatabase !== undefined) {
      const database = client.db(ofDatabase.databaseName ?? "");
      targets.set(ofDatabase.id, { database, collection: database.collection("none") });
    }
    if (ofCollection === undefined) continue;
    const { database } = targets.get(ofCollection.database ?? "") ?? { database: client.db("none") };
    const collection = database.collection(ofCollection.collectionName ?? "", ofCollection.collectionOptions);
    targets.set(ofCollection.id, { database, collection });
  }
  return targets;
}

/** Undefined for an operation that the runner does not have. */
function callOf({ name, object, arguments: all = {} }: Operation): Call | undefined {
  if ("session" in all) return undefined;
  if (name === "aggregate")
    return (target) => {
      const parent = object.startsWith("database") ? target.database : target.collection;
      return parent.aggregate(all["pipeline"] as object[], optionsOf(all, "pipeline")).toArray();
    };
  const method = lookUp(methods, name);
  if (method === undefined) return lookUp(others, name);
  return async ({ collection }) => {
    const { method: of, parameters, options } = method(all);
    const call = Reflect.get(collection, of) as (...parameters: readonly unknown[]) => Promise<unknown>;
    return call.call(collection, ...parameters, options);
  };
}

async function differenceOf(operation: Operation, targets: ReadonlyMap<string, Target>): Promise<string | undefined> {
  const { expectResult, expectError, arguments: all = {} } = operation;
  const target = targets.get(operation.object);
  const call = callOf(operation);
  if (target === undefined || call === undefined) return `no ${operation.object}`;
  let result: unknown;
  try {
    result = await call(target, all);
  } catch (error) {
    return expectError === undefined ? String(error) : errorDifference(expectError, error);
  }
  if (expectError !== undefined) return "no error";
  if (expectResult === undefined || matches(expectResult, result, "root")) return undefined;
  return `${textOf(result)} instead of ${textOf(expectResult)}`;
}

function errorDifference({ errorCode, errorContains }: ExpectedError, error: unknown): string | undefined {
  const { code, message } = error as { code?: unknown; message?: string };
  if (errorCode !== undefined && code !== errorCode) return `code ${String(code)} instead of ${errorCode}`;
  if (errorContains === undefined) return undefined;
  const isNamed = message?.toLowerCase().includes(errorContains.toLowerCase()) === true;
  return isNamed ? undefined : `${String(message)} without ${errorContains}`;
}

const textOf = (value: unknown) => BSON.EJSON.stringify(value, { relaxed: true }).slice(0, 300);
