import pg from "pg";
import type { EngineEndpoint } from "./engine-clients.ts";

/** A consumer of pgoutput over a replication connection, with the commands that Debezium sends. */
export interface ChangeConsumer {
  /** Runs a command; resolves with the first column of its first row. */
  command(text: string): Promise<unknown>;
  /** Begins to stream the slot. */
  start(slot: string, publication: string): void;
  /** Bytes of data that a command copied, other than the stream of a slot, such as BASE_BACKUP. */
  readonly copiedBytes: number;
  /** Inserted rows so far, as the texts of their columns. */
  readonly inserted: readonly (readonly string[])[];
  end(): Promise<void>;
}

interface ConsumerOptions {
  readonly user: string;
  readonly password: string;
  /** `true` is a physical connection, which belongs to no database. */
  readonly replication?: "database" | "true";
}

/** Rejects if the engine admits no such connection. */
export async function connectConsumer(machine: EngineEndpoint, options: ConsumerOptions): Promise<ChangeConsumer> {
  const { user, password, replication = "database" } = options;
  const { address: host, port } = machine.instance.spec;
  const ssl = { ca: machine.ca, servername: machine.serverName };
  const config: pg.ClientConfig & { replication: string } = {
    host,
    port,
    ssl,
    user,
    password,
    database: "defaultdb",
    replication,
  };
  const client = new pg.Client(config);
  client.on("error", () => undefined);
  await client.connect();
  const inserted: string[][] = [];
  let copiedBytes = 0;
  client.connection.on("copyData", ({ chunk }: { chunk: Buffer }) => {
    if (chunk[0] === archiveData) copiedBytes += chunk.length - 1;
    const row = chunk[0] === walData ? insertedRow(chunk.subarray(walDataHeader)) : undefined;
    if (row !== undefined) inserted.push(row);
  });
  return {
    async command(text) {
      const [result] = [await client.query<Record<string, unknown>>(text)].flat();
      return Object.values(result?.rows[0] ?? {})[0];
    },
    start(slot, publication) {
      const options = `"proto_version" '1', "publication_names" '${publication}', "messages" 'true'`;
      // The query ends with the connection.
      client.query(`START_REPLICATION SLOT "${slot}" LOGICAL 0/0 (${options})`).catch(() => undefined);
    },
    inserted,
    get copiedBytes() {
      return copiedBytes;
    },
    async end() {
      client.connection.stream.destroy();
    },
  };
}

/** Type byte of a message with data of BASE_BACKUP. */
const archiveData = 0x64;
/** Type byte of a message with log: `w`, followed by two positions and a time. */
const walData = 0x77;
const walDataHeader = 25;

/** Columns of an Insert message of pgoutput; undefined for other messages. */
function insertedRow(message: Buffer): string[] | undefined {
  if (message.toString("latin1", 0, 1) !== "I") return undefined;
  const columns = message.readUInt16BE(6);
  const row: string[] = [];
  for (let at = 8; row.length < columns; ) {
    const isText = message.toString("latin1", at, at + 1) === "t";
    const length = isText ? message.readUInt32BE(at + 1) : 0;
    row.push(message.toString("utf8", at + 5, at + 5 + length));
    at += isText ? 5 + length : 1;
  }
  return row;
}
