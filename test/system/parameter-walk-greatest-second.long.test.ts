import { describe } from "vitest";
import { liveCases } from "./parameter-walk/live-cases.ts";

describe("second half of the parameters of a running PostgreSQL 18, each at its greatest value", () =>
  liveCases("18", "greatest", "second"));
