import { describe } from "vitest";
import { replayCases } from "./parameter-walk/replay-cases.ts";

describe("log of a PostgreSQL whose parameters are at their least value, first half", () =>
  replayCases("least", "first"));
