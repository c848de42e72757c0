"""python3 -m unittest discover -s tests/bench -p '*_test.py'"""

import unittest

from stats import MISSED, REACHED, UNCLEAR, Interval, interval, median_of, percentile, ratios, verdict


class Stats(unittest.TestCase):
    def test_an_interval_holds_its_median_and_narrows_with_more_rounds(self):
        few = interval([0.9, 1.0, 1.1])
        many = interval([0.9, 1.0, 1.1] * 20)
        self.assertLessEqual(few.low, few.median)
        self.assertLessEqual(few.median, few.high)
        self.assertLess(many.high - many.low, few.high - few.low)

    def test_two_values_have_their_range(self):
        self.assertEqual(interval([2.0, 1.0]), Interval(1.5, 1.0, 2.0))

    def test_one_round_that_was_disturbed_does_not_move_the_median(self):
        self.assertEqual(interval([1.0, 1.0, 1.0, 1.0, 9.0]).median, 1.0)

    def test_nothing_measured_is_no_figure(self):
        self.assertRaises(ValueError, interval, [])
        self.assertRaises(ValueError, ratios, [1.0], [1.0, 2.0])

    def test_a_ratio_is_formed_inside_its_round(self):
        self.assertEqual(ratios([1.0, 10.0], [2.0, 20.0]), [0.5, 0.5])
        self.assertEqual(ratios([3.0], [2.0], less=1.0), [1.0])

    def test_the_median_of_a_histogram_counts_only_what_came_between_two_looks(self):
        after = [(1.0, 10), (2.0, 14), (4.0, 20), (float("inf"), 20)]
        self.assertEqual(median_of([], after), 1.0)
        self.assertEqual(median_of([(1.0, 10)], [(1.0, 10), (2.0, 14), (4.0, 14)]), 1.5)
        self.assertRaises(ValueError, median_of, after, after)

    def test_percentiles(self):
        self.assertEqual(percentile(range(100), 0.99), 99)
        self.assertEqual(percentile([5], 0.99), 5)

    def test_a_goal_is_reached_by_the_whole_interval(self):
        self.assertEqual(verdict(Interval(0.9, 0.85, 0.95), at_most=1.0), REACHED)
        self.assertEqual(verdict(Interval(0.9, 0.85, 1.05), at_most=1.0), UNCLEAR)
        self.assertEqual(verdict(Interval(1.2, 1.1, 1.3), at_most=1.0), MISSED)
        self.assertEqual(verdict(Interval(1.2, 1.1, 1.3), at_least=1.1), REACHED)
        self.assertEqual(verdict(Interval(1.0, 0.9, 1.05), at_least=1.1), MISSED)

    def test_a_control_that_is_off_is_charged_to_the_verdict(self):
        found = Interval(0.9, 0.88, 0.95)
        self.assertEqual(verdict(found, at_most=1.0, control=0.98), REACHED)
        self.assertEqual(verdict(found, at_most=1.0, control=1.1), UNCLEAR)
        self.assertEqual(verdict(Interval(0.1, 0.1, 0.1), at_most=1.0, control=1.4), UNCLEAR)


if __name__ == "__main__":
    unittest.main()
