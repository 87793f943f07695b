import { readFileSync } from "node:fs";
import { Redis as Valkey } from "iovalkey";
import { Client } from "pg";
import { addressOf } from "../api/clients.ts";
import type { Platform } from "../platform/platform.ts";

// Connects as machines of the platform do: its own DNS server resolves the names, and the variable has the rest.

/** Connected by DATABASE_URL, with the file of authorities that it names. The caller ends it. */
export async function openDatabaseUrl(platform: Platform, text: string): Promise<Client> {
  const url = new URL(text);
  const client = new Client({
    host: await addressOf(platform, url.hostname),
    port: Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1),
    ssl: { ca: readFileSync(url.searchParams.get("sslrootcert") ?? "", "utf8"), servername: url.hostname },
    connectionTimeoutMillis: 10_000,
  });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Connected by CACHE_URL. The caller disconnects it. */
export async function openValkeyUrl(platform: Platform, text: string): Promise<Valkey> {
  const url = new URL(text);
  const client = new Valkey({
    host: await addressOf(platform, url.hostname),
    port: Number(url.port),
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    tls: { ca: platform.ca, servername: url.hostname },
    lazyConnect: true,
  });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}
