"""The page of `regard view -o x.html` in Chromium: opened, pointed at, chosen from. Run by script/check page.

    view_test.py PROGRAM TRACES    PROGRAM is regard; TRACES a folder with sentence, hostile, long, picture, sound .trace
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

PROGRAM, TRACES = sys.argv[1], Path(sys.argv[2])


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.folder.cleanup()

    def open(self, name, *options, scheme="light"):
        html = Path(self.folder.name) / f"{name}.html"
        subprocess.run([PROGRAM, "view", str(TRACES / f"{name}.trace"), "-o", str(html), *options], check=True)
        context = self.browser.new_context(color_scheme=scheme, viewport={"width": 1100, "height": 900})
        self.addCleanup(context.close)
        page = context.new_page()
        self.bad = []
        page.on("console", lambda message: self.bad.append(message.text))
        page.on("pageerror", lambda error: self.bad.append(str(error)))
        page.on("dialog", lambda dialog: (self.bad.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.bad.append(request.url)
                if not request.url.startswith(("file://" + str(html), "data:")) else None)
        page.goto(f"file://{html}")
        expect(page.locator("#value")).not_to_be_empty()  # not wait_for_function: the page forbids eval
        return page

    def tearDown(self):
        self.assertEqual(self.bad, [])  # no error, no request

    def value(self, page):
        return page.locator("#value").inner_text()

    def test_opens_with_title_erasure_and_the_first_cell(self):
        page = self.open("sentence")
        self.assertEqual(page.locator("h1").inner_text(), "他们在看书 。")
        self.assertIn("by 4.210 without the 3 words", page.locator("#erasure").inner_text())
        self.assertTrue(self.value(page).startswith("They → 他们: 0."))
        self.assertFalse(page.locator("#lens").is_visible())
        self.assertFalse(page.locator("#picture").is_visible())

    def test_pointing_at_a_cell_tells_its_weight(self):
        page = self.open("sentence", "--layer", "0", "--head", "0")
        box = page.locator("#map").bounding_box()
        # The map ends right below; cells are 28 pixels: the last row and, from it, upwards.
        seen = set()
        for up in range(6):
            y = box["y"] + box["height"] - 4 - 14 - 28 * up
            for x in range(int(box["x"]) + 60, int(box["x"] + box["width"]), 9):
                page.mouse.move(x, y)
                seen.add(self.value(page))
        self.assertIn("reading → 看: 0.634", seen)
        self.assertIn("reading → 在: 0.364", seen)
        self.assertEqual(len(seen), 30)

    def test_choosing_a_head_a_map_and_a_measure_changes_what_is_shown(self):
        page = self.open("sentence", "--layer", "0", "--head", "0")
        page.get_by_role("button", name="reading").first.hover()
        page.get_by_role("button", name="看").hover()
        self.assertEqual(self.value(page), "reading → 看: 0.634")
        page.mouse.move(5, 5)
        page.locator("#choose-head").select_option("3")
        self.assertEqual(self.value(page), "reading → 看: 0.348")
        page.locator("#choose-map").select_option(label="decoder")
        self.assertTrue(self.value(page).startswith("reading → reading: "))
        before = self.value(page)
        page.locator("#choose-measure").select_option("norms")
        self.assertNotEqual(self.value(page), before)
        page.locator("#choose-measure").select_option("rollout")
        self.assertEqual(page.locator("#choose-layer").input_value(), "-1")

    def test_the_keyboard_is_enough(self):
        page = self.open("sentence", "--layer", "0", "--head", "0")
        page.locator("#map").focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
            page.keyboard.press(key)
        self.assertEqual(self.value(page), "reading → 看: 0.634")
        page.keyboard.press("End")
        page.keyboard.press("ArrowRight")  # nothing beyond the edge
        self.assertTrue(self.value(page).startswith("reading → 。: 0.000"))
        page.keyboard.press("Home")
        self.assertTrue(self.value(page).startswith("reading → 他们: "))

    def test_words_are_shaded_by_the_row_that_is_pointed_at(self):
        for scheme in ("light", "dark"):
            page = self.open("sentence", "--layer", "0", "--head", "0", scheme=scheme)
            page.get_by_role("button", name="They").hover()

            def light(name):
                color = page.get_by_role("button", name=name).evaluate("e => getComputedStyle(e).backgroundColor")
                return sum(int(part) for part in color.strip("rgb()").split(","))

            if scheme == "light":
                self.assertLess(light("他们"), light("书"))
            else:
                self.assertGreater(light("他们"), light("书"))
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            self.assertEqual(ground, "rgb(255, 255, 255)" if scheme == "light" else "rgb(17, 19, 24)")

    def test_text_of_a_hostile_trace_stays_text(self):
        page = self.open("hostile")
        self.assertEqual(page.locator("h1").inner_text(), "</script><script>alert(1)</script><img src=x onerror=alert(2)>")
        self.assertEqual(page.locator("img").count(), 0)
        self.assertEqual(page.get_by_role("button", name="</script><b>").count(), 1)

    def test_a_long_map_tells_the_heaviest_of_the_row(self):
        page = self.open("long")
        page.locator("#map").focus()
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        self.assertIn("w3 0.933", page.locator("#heaviest").inner_text())
        page.keyboard.press("End")
        expect(page.locator("#value")).to_have_text("w3 → w1199: 0.000 or so")
        self.assertTrue(page.locator("#lens").is_visible())
        page.keyboard.press("Home")
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        self.assertEqual(self.value(page), "w3 → w3: 0.933")
        page.wait_for_timeout(300)
        inside = page.locator("#lens").evaluate(  # the cell itself in the middle, heavy; the one right of it light
            """c => { const all = c.getContext('2d').getImageData(0, 0, c.width, c.height);
                     return [123, 135].map(x => all.data[4 * (123 * all.width + x)]); }""")
        self.assertLess(inside[0], 30)
        self.assertGreater(inside[1], 230)

    def test_a_picture_shows_where_the_word_looked(self):
        page = self.open("picture")
        page.get_by_role("button", name="square").hover()
        page.wait_for_timeout(200)
        colors = page.locator("#picture").evaluate(
            """c => { const all = c.getContext('2d').getImageData(0, 0, c.width, c.height);
                     return [[225, 135], [20, 340]].map(([x, y]) => all.data[4 * (y * all.width + x)]); }""")
        self.assertGreater(colors[0], 200)  # the square, lit
        self.assertLess(colors[1], 100)  # the grass

    def test_a_sound_lies_above_its_frames(self):
        page = self.open("sound")
        page.get_by_role("button", name="m", exact=True).hover()

        width, drawn, lit = page.locator("#sound").evaluate(
            """c => { const all = c.getContext('2d').getImageData(0, 0, c.width, c.height), drawn = [], lit = [];
                for (let x = 0; x < all.width; ++x) {
                  const [r, g, b, a] = all.data.slice(4 * (5 * all.width + x));  // above the wave
                  if (all.data[4 * (100 * all.width + x) + 3] > 0) drawn.push(x);  // within the spectrum
                  if (a > 0 && r > b + 60) lit.push(x);
                }
                return [c.width, drawn, lit]; }""")
        self.assertEqual(width, page.locator("#map").evaluate("c => c.width"))
        self.assertEqual(len(drawn), 720)  # 60 frames of 12 pixels
        self.assertEqual([(x - drawn[0]) // 12 for x in (lit[0], lit[-1])], [44, 45])  # 0.88 s and 0.90 s
        self.assertFalse(self.open("sentence").locator("#sound").is_visible())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
