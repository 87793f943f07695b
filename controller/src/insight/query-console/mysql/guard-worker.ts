import { serveGuard } from "../serve-guard.ts";
import { checkStatement } from "./guard.ts";

serveGuard(checkStatement, "SELECT a, count(*) FROM b WHERE c IN (1, 'x') GROUP BY 1 ORDER BY 2 LIMIT 5");
