import { describe } from "vitest";
import { liveCases } from "./parameter-walk/live-cases.ts";

describe("first half of the parameters of a running PostgreSQL 18, each at its greatest value", () =>
  liveCases("18", "greatest", "first"));
