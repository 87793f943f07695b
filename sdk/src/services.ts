import { pages } from "./pages.ts";
import type { RequestOptions, Transport } from "./transport.ts";
import type {
  Connection,
  LogLine,
  LogPage,
  ManagedService,
  NewService,
  Operation,
  ServiceChange,
  TaskSummary,
} from "./types.ts";

export interface ServiceFilter {
  readonly name?: string;
  readonly status?: string;
  readonly database_type?: string;
  /** "key:value". */
  readonly tag?: string;
}

export type Verb = "start" | "stop" | "restart";

type Options = Pick<RequestOptions, "signal">;

/** Managed database services. Each method throws an ApiError when the API refuses. */
export interface Services {
  create(service: NewService, options?: Options): Promise<ManagedService>;
  list(filter?: ServiceFilter, options?: Options): AsyncGenerator<ManagedService>;
  get(id: string, options?: Options): Promise<ManagedService>;
  update(id: string, change: ServiceChange, options?: Options): Promise<ManagedService>;
  command(id: string, verb: Verb, options?: Options): Promise<ManagedService>;
  delete(id: string, options?: Options): Promise<ManagedService>;
  connection(id: string, options?: Options): Promise<Connection>;
  taskSummary(id: string, options?: Options): Promise<TaskSummary>;
  operations(id: string, options?: Options): AsyncGenerator<Operation>;
  operation(id: string, options?: Options): Promise<Operation>;
  logs(
    id: string,
    query?: {
      since?: string | undefined;
      level?: string | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
    },
    options?: Options,
  ): Promise<LogPage>;
  /** Lines as they come, until the signal aborts. */
  followLogs(
    id: string,
    query?: { since?: string | undefined; level?: string | undefined },
    options?: Options,
  ): AsyncGenerator<LogLine>;
}

export function createServices(transport: Transport): Services {
  const path = (id: string, rest = "") => `/managed-services/${encodeURIComponent(id)}${rest}`;
  return {
    create: (body, options) => transport.request("POST", "/managed-services", { ...options, body }),
    list: (filter, options) => pages(transport, "/managed-services", "services", { ...options, query: { ...filter } }),
    get: (id, options) => transport.request("GET", path(id), options),
    update: (id, body, options) => transport.request("PATCH", path(id), { ...options, body }),
    command: (id, verb, options) => transport.request("POST", path(id, `/${verb}`), options),
    delete: (id, options) => transport.request("DELETE", path(id), options),
    connection: (id, options) => transport.request("GET", path(id, "/connection"), options),
    taskSummary: (id, options) => transport.request("GET", path(id, "/task-summary"), options),
    operations: (id, options) => pages(transport, path(id, "/operations"), "operations", options),
    operation: (id, options) => transport.request("GET", `/operations/${encodeURIComponent(id)}`, options),
    logs: (id, query, options) => transport.request("GET", path(id, "/logs"), { ...options, query: { ...query } }),
    async *followLogs(id, query, options) {
      const response = await transport.open("GET", path(id, "/logs"), {
        ...options,
        query: { ...query, follow: true },
      });
      for await (const data of eventData(response)) yield JSON.parse(data) as LogLine;
    },
  };
}

/** The data of each server-sent event. */
async function* eventData(response: Response): AsyncGenerator<string> {
  if (response.body === null) return;
  let rest = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data: "));
      if (data.length > 0) yield data.map((line) => line.slice(6)).join("\n");
    }
  }
}
