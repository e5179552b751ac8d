/* The stages of one attention, each as a title, a formula, and a sentence with the numbers of the step. */

import { number } from "../look/data.js";

const SCORES = {
  Dot: ["e = qᵀk", "multiplies query and key feature by feature and adds up"],
  ScaledDot: ["e = qᵀk / √d", "multiplies query and key feature by feature, adds up, and divides by √d of d features"],
  General: ["e = (Wq)ᵀk", "multiplies the projected query and the key feature by feature and adds up"],
  Cosine: ["e = τ · cos(q, k)", "is the cosine of the angle between query and key, times τ"],
  Additive: ["e = vᵀ tanh(Wq + Uk)", "adds projected query and key, squashes each feature by tanh, and weighs it by v"],
};
const THRESHOLD = "θ is such that the weights add up to 1; what lies below it gets exactly 0.";
const NORMALIZERS = {
  softmax: ["a = exp(e / τ) / Σ exp(e / τ)", "Softmax: every piece gets some weight, and all weights add up to 1."],
  sparsemax: ["a = max(e / τ − θ, 0)", `Sparsemax: ${THRESHOLD}`],
  entmax15: ["a = max(e / 2τ − θ, 0)²", `Entmax 1.5, between softmax and sparsemax: ${THRESHOLD}`],
  hard: ["a = 1 where e is largest", "Hard attention: all the weight is on the piece with the largest energy."],
};

/** The value of an energy, feature by feature: their sum is the energy. */
export function contributions(reading, key) {
  const { query, vector, scale } = reading;
  if (vector) return key.map((value, index) => vector[index] * Math.tanh(query[index] + value));
  return key.map((value, index) => scale * query[index] * value);
}

const percent = (value) => `${number(100 * value, value < 0.1 || (value > 0.99 && value < 0.9995) ? 1 : 0)} %`;

/** `names`: of the source pieces; `word`: the piece that the step writes; `several`: whether there are other heads. */
export function stagesOf({ reading, names, word, next, several }) {
  const [formula, way] = SCORES[reading.score] ?? ["e = score(q, k)", "compares query and key"];
  const [rule, meaning] = NORMALIZERS[reading.normalizer];
  const order = names.map((_, index) => index).sort((one, other) => reading.weights[other] - reading.weights[one]);
  const best = order[0];
  const hidden = reading.allowed.filter((each) => !each).length;
  const top = next[0];
  const threshold = reading.threshold === null ? "" : `,  θ = ${number(reading.threshold)}`;
  const shown = (text) => (text ? `“${text}”` : "the end");
  return [
    {
      title: "Query", formula: "q",
      sentence: `The decoder is about to write ${shown(word)}. What it is looking for is a vector of `
        + `${reading.query.length} numbers, the query${several ? " of this head" : ""}.`,
    },
    {
      title: "Keys", formula: "k₁ … kₛ",
      sentence: `Each of the ${names.length} source pieces offers a vector of the same length, its key. `
        + "What the encoder read is in it: the piece and its neighbours.",
    },
    {
      title: "Energies", formula, sentence: `The score says how well query and key fit: it ${way}. `
        + `${shown(names[best])} gets ${number(reading.scores[best])}.`,
    },
    {
      title: "Pattern", formula: reading.pattern, sentence: hidden
        ? `The pattern hides ${hidden} of the ${names.length} pieces at this step: they get no weight.`
        : "The pattern says which pieces may be attended to: here, all of them.",
    },
    {
      title: "Weights", formula: rule + threshold,
      sentence: `${meaning} ${shown(names[best])} has ${percent(reading.weights[best])}.`
        + (reading.gain ? " Then weights far from the predicted position are made smaller." : ""),
    },
    {
      title: "Weighted sum", formula: "c = Σ a · v",
      sentence: "Each piece also has a value vector. The sum of all values, each times its "
        + `weight, is the context: ${reading.context.length} numbers, the largest part of it from ${shown(names[best])}.`,
    },
    {
      title: "Next word", formula: "p = softmax(E o)", sentence: (several
        ? "The contexts of all heads and layers become" : "State and context together become")
        + " a probability for every piece of the vocabulary. "
        + `The likeliest is ${shown(top.text)} with ${percent(top.altered ?? top.own)}.`,
    },
  ];
}
