// Rules of the lint that are ours.
import { audited } from "./audited.js";
import { noVoidCall } from "./no-void-call.js";
import { comments, names } from "./words.js";

export default {
  meta: { name: "holdfast" },
  rules: { audited, "no-void-call": noVoidCall, names, comments },
};
