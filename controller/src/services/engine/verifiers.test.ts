import pg from "pg";
import { expect, test } from "vitest";
import { startTestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { makePassword } from "#kernel/secrets/engine-password.ts";
import { cachingSha2Verifier } from "./caching-sha2-verifier.ts";
import { kafka, kafkaVerifier } from "./kafka.ts";
import { mysql } from "./mysql.ts";
import { scramSha256Verifier } from "./scram-verifier.ts";
import { valkey } from "./valkey.ts";

test("the verifier matches the example of RFC 7677", () => {
  const verifier = scramSha256Verifier("pencil", Buffer.from("W22ZaJ0SNY7soEsUEjb6gQ==", "base64"));
  expect(verifier).toBe(
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
  );
});

// SHA-256-crypt of OpenSSL (`openssl passwd -5`), which takes 16 characters of salt.
test.each([
  ["saltstringsaltst", "Hello world!", "a5C8Ofk71MUIoKve2QuP9FMl.dwNgseF5tR1LGAL7iB"],
  ["abcdefghijklmnop", "x", "fiUnwzJyCDn7Dx53oezcP81DtfKy73q.P999JrS8fsB"],
  [
    "./0AZaz.........",
    "a password of more than thirty-two bytes, ä and ö",
    "8z5y6PM/mnWDjJ82iXOUF6HJ2r2nk71wyevNPZCeOKB",
  ],
])("MySQL's verifier with the salt %s is SHA-256-crypt", (salt, password, hash) => {
  expect(cachingSha2Verifier(password, salt)).toBe(`$A$005$${salt}${hash}`);
});

test("MySQL's verifiers have different salts", () => {
  const [one, two] = [mysql.verifierOf("x"), mysql.verifierOf("x")];
  expect(one).toMatch(/^\$A\$005\$[./0-9A-Za-z]{63}$/);
  expect(one).not.toBe(two);
});

test("Kafka's verifier has the salted passwords of RFC 5802, with one random salt", () => {
  const salt = Buffer.from("a fixed salt of 24 bytes");
  const [sha256, sha512] = kafkaVerifier("pencil", salt).split(",");
  // PBKDF2 of OpenSSL (`openssl kdf -kdfopt pass:pencil ... PBKDF2`).
  expect(sha256).toBe(`SCRAM-SHA-256$8192:${salt.toString("base64")}$JWKmUBJlgd1NopRWUlLa+7AK0wVjQLtXzFvGjQUDtaA=`);
  expect(sha512).toMatch(/^SCRAM-SHA-512\$8192:[\w+/=]{32}\$[\w+/]{86}==$/);
  expect(kafka.verifierOf("x")).not.toBe(kafka.verifierOf("x"));
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
  // The reload takes some time; until then every password is admitted.
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
