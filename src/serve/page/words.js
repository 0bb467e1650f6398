// @ts-check
// All that the page says, in English and Chinese. {0}, {1} … stand for what is put there.
import { recall, remember } from "./dom.js";

const en = {
  title: "Regard: attention that can be touched",
  tagline: "where a model looks, and what if it looked elsewhere",
  translate: "Translate", lab: "Lab", file: "Trace file",
  theme: "Colours", themeAuto: "as the system", themeLight: "light", themeDark: "dark",
  language: "Language",
  model: "Model", modelAuto: "by the letters of the text", text: "Text", textHint: "Type a sentence …",
  go: "Translate", alternatives: "Alternatives", beam: "Beam", translation: "Translation",
  examples: "Examples:", nBest: "Other translations", best: "best",
  translating: "Translating …", translated: "{0} → {1}, model {2}, {3} ms, log-probability {4}", logProbability: "log-probability {0}",
  nothing: "Type a sentence, and see its translation and where the model looked.",
  map: "Map", layer: "Layer", head: "Head", measure: "Shows", mean: "mean", allLayers: "mean of all",
  weights: "weights", norms: "weights × value norms", rollout: "rollout", words: "whole words",
  alignment: "Alignment head", alignmentHint: "the layer and head that tell best which words belong together",
  cross: "cross: target looks at source", encoder: "encoder: source looks at itself", decoder: "decoder: target looks at itself",
  source: "Source", target: "Target", written: "Written so far",
  looked: "{0}: looked at", looks: "{0}: looks", both: "{0}",
  matrix: "Attention matrix of {0} rows and {1} columns. Arrow keys walk through it.",
  matrixHelp: "Point at a word or a cell, or walk with the arrow keys. Ctrl + wheel, + and − zoom, 0 shows all.",
  pointHint: "Point at a word to see where it looked.",
  cellIs: "{0} → {1}: {2}", rowIs: "{0} looks at {1}", columnIs: "{0} is looked at by {1}", unknown: "not known",
  greatest: "Most", heads: "All heads of this map", headName: "layer {0}, head {1}", headsLeft: "and {0} more",
  zoomIn: "Larger", zoomOut: "Smaller", zoomAll: "Show all", numbers: "Numbers as a table",
  numbersLarge: "The table has room for 100 rows and 60 columns; this map is larger. The trace has all of it.",
  download: "Save", saveTrace: "Trace",
  computing: "computing …",
  whatIf: "What if …", whatIfHint: "Choose a head, a source word or a cell, then change it. The rest is translated again at once.",
  mute: "Mute head {0}.{1}", muteNone: "Mute a head (choose one)", hide: "Black out “{0}”", hideNone: "Black out a source word (choose one)",
  pin: "“{0}” looks at “{1}”", pinNone: "Pin a target word to a source word (choose a cell)",
  pinHelp: "In the cross map: drag from cell to cell within a row, or press P at a cell to pin, B to black out its column, M to mute the chosen head, Z to undo.",
  changes: "Changes", undo: "Undo", reset: "Undo all", changeMute: "{0}: head {1}.{2} is mute", changeHide: "“{0}” is blacked out",
  changePin: "“{0}” looks at “{1}” alone",
  before: "before", after: "after", difference: "difference", show: "Show",
  scoreChange: "log-probability {0} → {1} ({2})", sameText: "The translation stays; its score changes.", otherText: "The translation changes.",
  noDifference: "Both translations have other words or places: no difference can be shown.",
  dropHere: "Drop a trace file anywhere on this page, or choose one:", choose: "Choose a file",
  fileHint: "regard translate --trace a.trace, regard align --trace, or any program that writes docs/trace.md",
  badFile: "This file cannot be shown: {0}", item: "Item", items: "{0} of {1}", shownFile: "{0}: {1} items",
  erasure: "Without the {0} words it looked at most the log-probability falls by {1}, without others by {2}.",
  noMaps: "This item has no maps: a model without attention looks nowhere.",
  error: "The server says: {0}", errorStatus: "The server answers {0}: {1}", offline: "The server cannot be reached. Is regard serve still running?",
  noSense: "The answer makes no sense. Is this regard serve?", key: "API key", keyHint: "This server wants a key.", noEdit: "This server cannot change attention.",
  mechanism: "Mechanism", line: "Line", lineHint: "score | scope & scope | align | read",
  score: "Score", scope: "Scope", align: "Align", read: "Read", usual: "usual",
  scoreIs: "how well a query and a key fit", scopeIs: "where one may look", alignIs: "how scores become weights", readIs: "what is taken away",
  formula: "Formula", paper: "Paper", usage: "Written as", allMechanisms: "All mechanisms", use: "Use",
  input: "Input", inputSentence: "a sentence", inputNumbers: "numbers", sentence: "Sentence", width: "Width", seed: "Seed",
  editNumbers: "Edit these numbers", addRow: "row +", dropRow: "row −", addColumn: "column +", dropColumn: "column −",
  queries: "Queries", keys: "Keys", values: "Values", query: "query", keyName: "key", feature: "feature",
  scale: "Scale", temperature: "Temperature", own: "the mechanism’s own",
  stepScores: "1. Scores", stepWeights: "2. Weights", stepContext: "3. Context",
  stepScoresIs: "one number for every query and key", stepWeightsIs: "every row sums to one", stepContextIs: "values, mixed by the weights",
  labTell: "{0} → {1}: score {2}, weight {3}", labContext: "context of {0}, feature {1}: {2} = {3}", masked: "may not look",
  written_out: "Written out: {0}", learned: "Weights of its own (drawn from the seed): {0}", labBad: "This is not a number: {0}",
  skip: "To the content",
};
/** @typedef {keyof typeof en} Key */

/** @type {Record<Key, string>} */
const zh = {
  title: "Regard：可以触摸的注意力",
  tagline: "模型看向哪里；如果它看向别处，又会怎样",
  translate: "翻译", lab: "实验室", file: "轨迹文件",
  theme: "颜色", themeAuto: "跟随系统", themeLight: "浅色", themeDark: "深色",
  language: "语言",
  model: "模型", modelAuto: "根据文字自动选择", text: "原文", textHint: "输入一句话……",
  go: "翻译", alternatives: "其他译文数", beam: "束宽", translation: "译文",
  examples: "例句：", nBest: "其他译文", best: "最佳",
  translating: "正在翻译……", translated: "{0} → {1}，模型 {2}，{3} 毫秒，对数概率 {4}", logProbability: "对数概率 {0}",
  nothing: "输入一句话，就能看到译文，以及模型看了哪里。",
  map: "注意力图", layer: "层", head: "头", measure: "显示", mean: "平均", allLayers: "所有层平均",
  weights: "权重", norms: "权重 × 值的范数", rollout: "逐层展开（rollout）", words: "整词",
  alignment: "对齐头", alignmentHint: "最能说明哪些词相对应的层和头",
  cross: "交叉：译文看原文", encoder: "编码器：原文看自身", decoder: "解码器：译文看自身",
  source: "原文", target: "译文", written: "已写出的词",
  looked: "{0}：被看", looks: "{0}：在看", both: "{0}",
  matrix: "注意力矩阵，{0} 行 {1} 列。用方向键移动。",
  matrixHelp: "指向一个词或一个格子，或用方向键移动。Ctrl + 滚轮、+ 和 − 缩放，0 显示全部。",
  pointHint: "指向一个词，看它看了哪里。",
  cellIs: "{0} → {1}：{2}", rowIs: "{0} 看向 {1}", columnIs: "看向 {0} 的有 {1}", unknown: "未知",
  greatest: "最大", heads: "此图的所有头", headName: "第 {0} 层，第 {1} 头", headsLeft: "还有 {0} 个",
  zoomIn: "放大", zoomOut: "缩小", zoomAll: "显示全部", numbers: "数字表格",
  numbersLarge: "表格最多 100 行 60 列，这张图更大。轨迹文件里有全部数字。",
  download: "保存", saveTrace: "轨迹",
  computing: "正在计算……",
  whatIf: "如果……", whatIfHint: "选择一个头、一个原文词或一个格子，然后改变它。其余部分会立即重新翻译。",
  mute: "关闭头 {0}.{1}", muteNone: "关闭一个头（请先选择）", hide: "遮住“{0}”", hideNone: "遮住一个原文词（请先选择）",
  pin: "让“{0}”看“{1}”", pinNone: "让译文词只看某个原文词（请先选格子）",
  pinHelp: "在交叉图中：在同一行里从一格拖到另一格；或在格子上按 P 固定，按 B 遮住该列，按 M 关闭所选的头，按 Z 撤销。",
  changes: "改动", undo: "撤销", reset: "全部撤销", changeMute: "{0}：头 {1}.{2} 已关闭", changeHide: "“{0}”被遮住",
  changePin: "“{0}”只看“{1}”",
  before: "之前", after: "之后", difference: "差别", show: "显示",
  scoreChange: "对数概率 {0} → {1}（{2}）", sameText: "译文不变，分数改变。", otherText: "译文改变了。",
  noDifference: "两个译文的词或位置不同，无法显示差别。",
  dropHere: "把轨迹文件拖到此页任意处，或选择一个：", choose: "选择文件",
  fileHint: "regard translate --trace a.trace、regard align --trace，或任何按 docs/trace.md 写文件的程序",
  badFile: "无法显示此文件：{0}", item: "条目", items: "{0} / {1}", shownFile: "{0}：{1} 个条目",
  erasure: "去掉它看得最多的 {0} 个词，对数概率下降 {1}；去掉其他词，下降 {2}。",
  noMaps: "此条目没有注意力图：没有注意力的模型哪里也不看。",
  error: "服务器说：{0}", errorStatus: "服务器回答 {0}：{1}", offline: "无法连接服务器。regard serve 还在运行吗？",
  noSense: "无法理解这个回答。这是 regard serve 吗？", key: "API 密钥", keyHint: "此服务器需要密钥。", noEdit: "此服务器不能改变注意力。",
  mechanism: "机制", line: "机制行", lineHint: "打分 | 范围 & 范围 | 对齐 | 读取",
  score: "打分", scope: "范围", align: "对齐", read: "读取", usual: "默认",
  scoreIs: "查询与键有多相配", scopeIs: "可以看哪里", alignIs: "分数怎样变成权重", readIs: "取走什么",
  formula: "公式", paper: "论文", usage: "写法", allMechanisms: "所有机制", use: "使用",
  input: "输入", inputSentence: "一句话", inputNumbers: "数字", sentence: "句子", width: "宽度", seed: "随机种子",
  editNumbers: "编辑这些数字", addRow: "行 +", dropRow: "行 −", addColumn: "列 +", dropColumn: "列 −",
  queries: "查询", keys: "键", values: "值", query: "查询", keyName: "键", feature: "特征",
  scale: "缩放", temperature: "温度", own: "机制自己的",
  stepScores: "1. 分数", stepWeights: "2. 权重", stepContext: "3. 上下文",
  stepScoresIs: "每个查询与每个键一个数", stepWeightsIs: "每行之和为一", stepContextIs: "按权重混合的值",
  labTell: "{0} → {1}：分数 {2}，权重 {3}", labContext: "{0} 的上下文，特征 {1}：{2} = {3}", masked: "不可看",
  written_out: "完整写法：{0}", learned: "自带的权重（由种子产生）：{0}", labBad: "这不是数字：{0}",
  skip: "跳到内容",
};

const all = { en, zh };
/** @typedef {keyof typeof all} Language */
/** @type {Set<() => void>} */
const listeners = new Set();
const remembered = recall("language");
/** @type {Language} */
let current = remembered === "en" || remembered === "zh" ? remembered
  : navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";

export const language = () => current;
/** @param {Key} key @param {...(string | number)} parts */
export const t = (key, ...parts) => all[current][key].replace(/\{(\d)\}/g, (_, i) => String(parts[Number(i)] ?? ""));
/** @param {string} name @returns {name is Key} */
export const isKey = (name) => Object.hasOwn(en, name);

/** @param {() => void} listener called now and whenever the language changes */
export function onLanguage(listener) {
  listeners.add(listener);
  listener();
}
/** @param {Language} wanted */
export function setLanguage(wanted) {
  current = wanted;
  remember("language", wanted);
  for (const each of listeners) each();
}

/** Elements of index.html say what they want: data-t the text, data-t-label the name, data-t-hint a placeholder. */
export function sayAll() {
  document.documentElement.lang = current === "zh" ? "zh-Hans" : "en";
  document.title = t("title");
  /** @param {string} attribute @param {(element: Element, text: string) => void} put */
  const each = (attribute, put) => {
    for (const element of document.querySelectorAll(`[${attribute}]`)) {
      const key = element.getAttribute(attribute) ?? "";
      if (isKey(key)) put(element, t(key));
    }
  };
  each("data-t", (element, text) => (element.textContent = text));
  each("data-t-label", (element, text) => element.setAttribute("aria-label", text));
  each("data-t-hint", (element, text) => element.setAttribute("placeholder", text));
}

const digits = 3;
/** @param {number} value */
export const weight = (value) => (Number.isNaN(value) ? t("unknown") : value.toFixed(digits).replace("-", "−"));
/** @param {number | null} value */
export const logProbability = (value) => (value === null ? "–" : value.toFixed(2).replace("-", "−"));
/** With its sign. @param {number} value */
export const change = (value) => (value > 0 ? "+" : "") + logProbability(value);
