/* Names and directions of languages by their codes. */

const RIGHT_TO_LEFT = new Set(["ar", "arc", "ckb", "dv", "fa", "he", "ks", "nqo", "ps", "sd", "syr", "ug", "ur", "yi"]);
const names = new Intl.DisplayNames(["en"], { type: "language" });

/** The English name of a language, or its code where it has none. */
export function languageName(code) {
  try {
    return names.of(code) ?? code;
  } catch {
    return code; /* not a code that the browser knows */
  }
}

export function directionOf(code) {
  if (!code) return "auto";
  return RIGHT_TO_LEFT.has(code.split(/[-_]/)[0].toLowerCase()) ? "rtl" : "ltr";
}
