import { Pool } from "undici";

/** An OpenSearch over TLS, with its user. */
interface Endpoint {
  /** Name in its certificate. */
  readonly host: string;
  readonly address: string;
  readonly port: number;
  readonly ca: string;
  readonly user: string;
  readonly password: string;
}

export interface BulkTarget {
  /** Writes one document. Throws unless it is acknowledged. */
  put(index: string, id: string, document: object): Promise<true>;
  /** Writes documents of 1,000 bytes, 1,000 a request; resolves with MB per second. Throws unless all are found. */
  bulk(index: string, documents: number): Promise<number>;
  close(): Promise<void>;
}

/** Clients of a bulk write. */
const connections = 4;
const documentsOfRequest = 1_000;
const documentBytes = 1_000;

export function openBulkTarget({ host, address, port, ca, user, password }: Endpoint): BulkTarget {
  const pool = new Pool(`https://${address}:${port}`, { connect: { ca, servername: host }, connections });
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

  async function send(method: "PUT" | "POST" | "GET", path: string, type: string, body: string): Promise<unknown> {
    const headers = { authorization, "content-type": type };
    const response = await pool.request({ method, path, headers, body });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${path}: HTTP ${response.statusCode} ${text.slice(0, 200)}`);
    return JSON.parse(text) as unknown;
  }
  const sendJson = (method: "PUT" | "POST" | "GET", path: string, body: object) =>
    send(method, path, "application/json", JSON.stringify(body));

  return {
    async put(index, id, document) {
      await sendJson("PUT", `/${index}/_doc/${id}`, document);
      return true;
    },
    async bulk(index, documents) {
      await sendJson("PUT", `/${index}`, { settings: { number_of_replicas: 0, refresh_interval: "-1" } });
      const requests = Array.from({ length: documents / documentsOfRequest }, (_, number) => linesOf(number));
      const bytes = requests.reduce((sum, text) => sum + text.length, 0);
      const startedAt = performance.now();
      await Promise.all(
        Array.from({ length: connections }, async () => {
          for (let text = requests.pop(); text !== undefined; text = requests.pop()) {
            const { errors } = (await send("POST", `/${index}/_bulk`, "application/x-ndjson", text)) as {
              errors: boolean;
            };
            if (errors) throw new Error("a document was refused");
          }
        }),
      );
      const wallMs = performance.now() - startedAt;
      await sendJson("POST", `/${index}/_refresh`, {});
      const { count } = (await sendJson("POST", `/${index}/_count`, {})) as { count: number };
      if (count !== documents) throw new Error(`${count} of ${documents} documents`);
      return bytes / 1e3 / wallMs;
    },
    close: () => pool.destroy(),
  };
}

/** One request: each document has a number, a time, and words from a list. */
function linesOf(request: number): string {
  return Array.from({ length: documentsOfRequest }, (_, at) => {
    const number = request * documentsOfRequest + at;
    const text = `entry ${number} of ${number % 97} is ${number % 13 === 0 ? "late" : "in time"} `;
    const document = { number, at: 1_700_000_000_000 + number, text: text.repeat(documentBytes / text.length) };
    return `{"index":{}}\n${JSON.stringify(document)}\n`;
  }).join("");
}
