import pg from "pg";
import { expect, test } from "vitest";
import { startTestPostgresql } from "../../../../test/support/engines/postgresql.ts";
import { makePassword } from "#kernel/secrets/passwords.ts";
import { scramSha256Verifier } from "./scram-verifier.ts";
import { valkey } from "./valkey.ts";

test("the verifier matches the example of RFC 7677", () => {
  const verifier = scramSha256Verifier("pencil", Buffer.from("W22ZaJ0SNY7soEsUEjb6gQ==", "base64"));
  expect(verifier).toBe(
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
  );
});

test("valkey's verifier is a SHA-256 hash", () => {
  expect(valkey.verifierOf("abc")).toBe("#ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});

test("PostgreSQL admits the password of a verifier, and no other", async () => {
  const postgresql = await startTestPostgresql();
  const password = makePassword();
  const superuser = new pg.Client(postgresql.url);
  await superuser.connect();
  await superuser.query(`create role someone login password '${scramSha256Verifier(password)}'`);
  const { rows } = await superuser.query("show hba_file");
  await superuser.query(`copy (select 'host all all all scram-sha-256') to '${rows[0].hba_file}'`);
  await superuser.query("select pg_reload_conf()");
  await superuser.end();
  const url = new URL(postgresql.url);
  url.username = "someone";
  // The reload takes a moment; until then every password is admitted.
  for (let trusted = true; trusted; ) trusted = await letsIn(url, "wrong");
  expect(await letsIn(url, password)).toBe(true);
  await postgresql.stop();
});

async function letsIn(url: URL, password: string): Promise<boolean> {
  const client = new pg.Client({
    host: url.hostname,
    port: Number(url.port),
    user: url.username,
    database: "postgres",
    password,
  });
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}
