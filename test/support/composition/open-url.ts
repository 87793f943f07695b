import { readFileSync } from "node:fs";
import { Redis as Valkey } from "iovalkey";
import { Client } from "pg";
import { addressOf } from "../api/clients.ts";
import type { Platform } from "../platform/platform.ts";

// As machines of the platform do it: the names are resolved by its own DNS server, and all else is in the variable.

/** Connected to what DATABASE_URL says, with the file of authorities that it names. The caller ends it. */
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

/** Connected to what CACHE_URL says. The caller disconnects it. */
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
