import { expect, test } from "vitest";
import { redactDigest } from "./redact-digest.ts";
import { withheld } from "./withheld.ts";

// As MySQL 9.7 prints digests.
test.each([
  "SELECT COUNT ( * ) FROM `items`",
  "INSERT INTO `items` VALUES (...) /* , ... */",
  "SELECT `a``b` , `4111111111111111` , ? FROM `shop` . `orders 'x'` WHERE `id` IN (...)",
  "CREATE TABLE `t` ( `id` INTEGER PRIMARY KEY , `c` VARCHAR (?) )",
  "SELECT /*+ MAX_EXECUTION_TIME (?) */ ?",
  "SELECT `a name that the engine cut",
])("%s is shown", (text) => {
  expect(redactDigest(text)).toBe(text);
});

test.each([
  "SELECT 'secret'",
  'SELECT "secret"',
  "SELECT 4111111111111111",
  "SELECT ? /* secret */",
  "SELECT ? # secret",
  "SELECT `a` 'secret` '",
  "",
])("%j is withheld", (text) => {
  expect(redactDigest(text)).toBe(withheld);
});
