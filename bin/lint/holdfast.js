// Lint rules of this repository, as a plugin of oxlint.
import { audited } from "./audited.js";
import { noClockWait } from "./no-clock-wait.js";
import { noDoubleCast } from "./no-double-cast.js";
import { noInlineStyle } from "./no-inline-style.js";
import { noSqlSleep } from "./no-sql-sleep.js";
import { noVoidCall } from "./no-void-call.js";
import { comments, names, texts, values } from "./words.js";

export default {
  meta: { name: "holdfast" },
  rules: {
    audited,
    "no-clock-wait": noClockWait,
    "no-double-cast": noDoubleCast,
    "no-inline-style": noInlineStyle,
    "no-sql-sleep": noSqlSleep,
    "no-void-call": noVoidCall,
    names,
    comments,
    texts,
    values,
  },
};
