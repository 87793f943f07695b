import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Connection, type ConnectionConfiguration, Request, TYPES } from "tedious";
import type { TestTds } from "./tds-front-end.ts";

export { TYPES };

export interface TdsResult {
  /** Rows of each result set, as objects of column names. */
  readonly sets: Record<string, unknown>[][];
  /** Names and types of the columns of each result set. */
  readonly columns: string[][];
  /** Collations of the columns of each result set; undefined for columns of other types than texts. */
  readonly collations: (object | undefined)[][];
  /** Numbers of the errors, in order. */
  readonly errors: number[];
  readonly messages: string[];
  readonly rowCount: number | undefined;
  /** Values of OUTPUT parameters. */
  readonly output: Record<string, unknown>;
}

type Parameter = readonly [name: string, type: (typeof TYPES)[keyof typeof TYPES], value: unknown, options?: object];

/** A session of tedious, the usual client of Node. */
export interface TdsClient {
  readonly connection: Connection;
  /** Sends a batch of statements unchanged. */
  batch(sql: string): Promise<TdsResult>;
  /** sp_executesql with parameters. */
  execute(sql: string, parameters: readonly Parameter[], outputs?: readonly Parameter[]): Promise<TdsResult>;
  /** Calls a procedure by an RPC message. */
  call(name: string, parameters?: readonly Parameter[], outputs?: readonly Parameter[]): Promise<TdsResult>;
  /** Prepares once, executes with each set of values, and unprepares. */
  prepared(
    sql: string,
    parameters: readonly Parameter[],
    values: readonly Record<string, unknown>[],
  ): Promise<TdsResult[]>;
  close(): Promise<void>;
}

/** A front end, or a service behind its own host name and address. */
export interface TdsTarget extends Pick<TestTds, "certificate" | "user" | "password"> {
  readonly server: { readonly port: number };
  /** Name in the certificate, `localhost` by default, and address to connect to. */
  readonly at?: { readonly host: string; readonly address: string };
}

/** Rejects with the driver's error if the sign-in fails. */
export async function connectTds(
  { server, certificate, user, password, at }: TdsTarget,
  { authentication = {}, options = {} }: { authentication?: object; options?: object } = {},
): Promise<TdsClient> {
  const config: ConnectionConfiguration = {
    server: at?.host ?? "localhost",
    authentication: { type: "default", options: { userName: user, password, ...authentication } },
    options: {
      port: server.port,
      database: "defaultdb",
      encrypt: true,
      trustServerCertificate: false,
      cryptoCredentialsDetails: { ca: certificate },
      connectTimeout: 60_000,
      cancelTimeout: 60_000,
      ...(at && { connector: () => openSocket(server.port, at.address) }),
      ...options,
    },
  };
  const connection = new Connection(config);
  connection.on("error", () => {});
  let hasEnded = false;
  connection.on("end", () => {
    hasEnded = true;
  });
  await new Promise<void>((resolve, reject) => {
    connection.connect((error) => (error === undefined ? resolve() : reject(error)));
  });
  return {
    connection,
    batch: (sql) => run(connection, sql, (request) => connection.execSqlBatch(request)),
    execute: (sql, parameters, outputs = []) =>
      run(connection, sql, (request) => {
        addParameters(request, parameters, outputs);
        connection.execSql(request);
      }),
    call: (name, parameters = [], outputs = []) =>
      run(connection, name, (request) => {
        addParameters(request, parameters, outputs);
        connection.callProcedure(request);
      }),
    prepared: (sql, parameters, values) => runPrepared(connection, sql, parameters, values),
    close: () =>
      new Promise((resolve) => {
        if (hasEnded) resolve();
        connection.once("end", () => resolve());
        connection.close();
      }),
  };
}

function addParameters(request: Request, parameters: readonly Parameter[], outputs: readonly Parameter[]): void {
  for (const [name, type, value, more] of parameters) request.addParameter(name, type, value, more);
  for (const [name, type, value, more] of outputs) request.addOutputParameter(name, type, value, more);
}

async function openSocket(port: number, host: string): Promise<Socket> {
  const socket = connect({ port, host });
  await once(socket, "connect");
  return socket;
}

interface Collected extends TdsResult {
  rowCount: number | undefined;
}

function collect(connection: Connection, request: Request): { result: Collected; stop(): void } {
  const result: Collected = {
    sets: [],
    columns: [],
    collations: [],
    errors: [],
    messages: [],
    rowCount: undefined,
    output: {},
  };
  request.on("columnMetadata", (columns) => {
    const list = Array.isArray(columns) ? columns : Object.values(columns);
    result.columns.push(list.map(({ colName, type }) => `${colName} ${type.name}`));
    result.collations.push(list.map(({ collation }) => collation));
    result.sets.push([]);
  });
  request.on("row", (columns: { metadata: { colName: string }; value: unknown }[]) => {
    result.sets.at(-1)?.push(Object.fromEntries(columns.map(({ metadata, value }) => [metadata.colName, value])));
  });
  request.on("returnValue", (name, value) => {
    result.output[name] = value;
  });
  const onError = ({ number }: { number: number }) => result.errors.push(number);
  const onInfo = ({ message }: { message: string }) => result.messages.push(message);
  connection.on("errorMessage", onError);
  connection.on("infoMessage", onInfo);
  return {
    result,
    stop() {
      connection.off("errorMessage", onError);
      connection.off("infoMessage", onInfo);
    },
  };
}

/** Errors of statements are in the result; the loss of the connection rejects. */
async function run(connection: Connection, sql: string, send: (request: Request) => void): Promise<TdsResult> {
  return new Promise((resolve, reject) => {
    const request = new Request(sql, (error, rowCount) => {
      stop();
      result.rowCount = rowCount;
      if (error != null && result.errors.length === 0) reject(error);
      else resolve(result);
    });
    const { result, stop } = collect(connection, request);
    send(request);
  });
}

async function runPrepared(
  connection: Connection,
  sql: string,
  parameters: readonly Parameter[],
  values: readonly Record<string, unknown>[],
): Promise<TdsResult[]> {
  let settle: (error: Error | null | undefined, rowCount?: number) => void = () => {};
  const request = new Request(sql, (error, rowCount) => settle(error, rowCount));
  for (const [name, type, , more] of parameters) request.addParameter(name, type, undefined, more);
  await new Promise<void>((resolve, reject) => {
    request.once("prepared", () => resolve());
    settle = (error) => error != null && reject(error);
    connection.prepare(request);
  });
  const results: TdsResult[] = [];
  for (const value of values) {
    request.removeAllListeners();
    const { result, stop } = collect(connection, request);
    await new Promise<void>((resolve, reject) => {
      settle = (error, rowCount) => {
        stop();
        result.rowCount = rowCount;
        if (error != null && result.errors.length === 0) reject(error);
        else resolve();
      };
      connection.execute(request, value);
    });
    results.push(result);
  }
  await new Promise<void>((resolve, reject) => {
    settle = (error) => (error == null ? resolve() : reject(error));
    connection.unprepare(request);
  });
  return results;
}
