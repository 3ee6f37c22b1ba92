"""What happens by itself: planner, runner, reaper, keeper, resumer."""
