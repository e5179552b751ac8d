// What npm's clients of LibreTranslate return: node talk.mjs ADDRESS prints it as JSON.
import { createRequire } from "node:module";
import translate from "translate";

const { libreTranslate } = createRequire(import.meta.url)("libretranslate-ts");
const address = process.argv[2];
const text = "The boy sees a mango.";

libreTranslate.setApiEndpoint(address);
libreTranslate.setApiKey("ignored-where-none-is-set");
translate.engine = "libre";
translate.url = `${address}/translate`;

const failure = await translate(text, { from: "en", to: "fr" }).catch((error) => error.message);
console.log(
  JSON.stringify({
    translate: await translate(text, { from: "en", to: "de" }),
    failure,
    languages: await libreTranslate.listLanguages(),
    detect: await libreTranslate.detect(text),
    libre: await libreTranslate.translate(text, "en", "de", 2),
    auto: await libreTranslate.translate(text, "auto", "de"),
    wrong: await libreTranslate.translate("", "en", "de"),
  }),
);
